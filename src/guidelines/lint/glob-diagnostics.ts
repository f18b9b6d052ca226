import { compileGlob, type Glob } from "../../base/glob/glob.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { splitOutsideBraces } from "../../specs/markdown/characters.ts";
import { relativeTo } from "../folders.ts";
import type { GuidelineRecord } from "../guideline-record.ts";

/**
 * A warning for every declared glob that matches no file, with a likely correction that does match. `files` are all files of the
 * project; without any there are no warnings.
 */
export function globDiagnostics(records: readonly GuidelineRecord[], files: readonly string[]): Diagnostic[] {
  const index = createFileIndex(files);
  if (index.size === 0) return [];
  const verdicts = new Map<string, Verdict | undefined>();
  // The front matter of a sectioned file holds for each of its sections, and is one mistake.
  const said = new Set<string>();
  const diagnostics: Diagnostic[] = [];
  for (const record of records) {
    if (record.source_type === "sample") continue;
    for (const source of new Set(record.globs)) {
      const key = `${record.scope}\n${source}`;
      if (!verdicts.has(key)) verdicts.set(key, judge(source, record.scope, index));
      const verdict = verdicts.get(key);
      const place = `${record.source_file}\n${source}`;
      if (verdict === undefined || said.has(place)) continue;
      said.add(place);
      diagnostics.push({
        severity: "warning",
        rule: "glob-no-match",
        ...verdict,
        path: record.source_file,
        line: record.span.start_line,
        id: record.id,
        field: "file_pattern",
      });
    }
  }
  return diagnostics;
}

interface Verdict {
  readonly code: "glob_invalid" | "glob_no_file";
  readonly message: string;
}

function judge(source: string, scope: string, index: FileIndex): Verdict | undefined {
  const glob = compileGlob(source);
  if (glob.invalid === undefined && index.hasMatch(glob, scope)) return undefined;
  const below = scope === "" ? "" : ` below ${shown(scope)}`;
  const intended = intendedGlob(source, scope, index);
  const hint = intended === undefined ? "" : ` Did you mean ${intended}?`;
  return glob.invalid === undefined
    ? { code: "glob_no_file", message: `The glob "${shown(source)}" matches no file${below}.${hint}` }
    : {
        code: "glob_invalid",
        message: `The glob "${shown(source)}" matches nothing: ${glob.invalid}.${hint}`,
      };
}

/** The first likely reading of a glob that matches a file, quoted; the corrections are for mistakes seen in real rules. */
function intendedGlob(source: string, scope: string, index: FileIndex): string | undefined {
  const parts = splitOutsideBraces(source).map((part) => part.trim());
  if (parts.length > 1 && parts.some((part) => isMatched(part, scope, index)))
    return `a list of ${parts.map((part) => `"${shown(part)}"`).join(", ")}`;
  const path = source.replaceAll("\\", "/").replace(/^(?:\.?\/)+/, "");
  const fromRoot = scope !== "" && path.startsWith(`${scope}/`) ? [path.slice(scope.length + 1)] : [];
  const folder = path.replace(/\/+$/, "");
  const mayBeFolder = !/[*?[{][^/]*$/.test(folder);
  const guesses = [
    ...fromRoot,
    path,
    path.replace(/\/\*$/, "/**"),
    ...(mayBeFolder ? [`${folder}/**`] : []),
    `**/${path}`,
    path.replace(/\/(\*[^/]*)$/, "/**/$1"),
    ...(mayBeFolder ? [`**/${folder}/**`] : []),
  ];
  const found = guesses.find((guess) => guess !== source && isMatched(guess, scope, index));
  return found === undefined ? undefined : `"${shown(found)}"`;
}

function isMatched(source: string, scope: string, index: FileIndex): boolean {
  const glob = compileGlob(source);
  return glob.invalid === undefined && index.hasMatch(glob, scope);
}

function shown(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a message
  return text.slice(0, 120).replace(/[\u0000-\u001f\u007f-\u009f]/g, " ");
}

/** The files of a project, so that a glob is tried on few of them. */
interface FileIndex {
  readonly size: number;
  /** Whether a file below `scope` matches a glob relative to it. */
  hasMatch(glob: Glob, scope: string): boolean;
}

/** `files` are project-relative, in any order. */
function createFileIndex(files: readonly string[]): FileIndex {
  const sorted = files.toSorted();
  const names = new Set(sorted.flatMap((path) => path.split("/")));
  const byExtension = Map.groupBy(sorted, extensionOf);
  const candidates = (glob: Glob, scope: string): readonly string[] => {
    if (!glob.names.every((name) => names.has(name))) return [];
    const dot = glob.suffix.lastIndexOf(".");
    const list =
      dot === -1 || glob.suffix.includes("/") ? sorted : (byExtension.get(glob.suffix.slice(dot)) ?? []);
    return startingWith(list, scope === "" ? glob.prefix : `${scope}/${glob.prefix}`);
  };
  return {
    size: sorted.length,
    hasMatch: (glob, scope) => candidates(glob, scope).some((path) => glob.matches(relativeTo(path, scope))),
  };
}

function extensionOf(path: string): string {
  const dot = path.lastIndexOf(".");
  return dot > path.lastIndexOf("/") ? path.slice(dot) : "";
}

/** The part of a sorted list whose texts begin with a prefix. */
function startingWith(sorted: readonly string[], prefix: string): readonly string[] {
  if (prefix === "") return sorted;
  const from = firstIndex(sorted, (text) => text >= prefix);
  const to = firstIndex(sorted, (text) => text >= prefix && !text.startsWith(prefix));
  return sorted.slice(from, to);
}

function firstIndex(sorted: readonly string[], passes: (text: string) => boolean): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (passes(sorted[middle] ?? "")) high = middle;
    else low = middle + 1;
  }
  return low;
}
