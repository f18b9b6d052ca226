import { attempt } from "../../base/attempt.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { codeSpans } from "../../specs/markdown/characters.ts";
import { lineKinds, lineText, type MarkdownScan } from "../../specs/markdown/scan-markdown.ts";
import { resolveImport } from "../explain/explain-by-table.ts";
import { folderOf, type GuidelineRecord } from "../guideline-record.ts";
import { type LintProject, quoteText, warningAbout } from "./finding.ts";

/** Only names of texts are taken for imports: `@acme/ui` and `@example.com` are not. */
const textFile = /\.(?:md|mdx|mdc|markdown|txt|json|ya?ml|toml|rst|adoc)$/i;

/** Links and imports of guidelines that lead to no file, with the file that was probably meant. */
export function findDeadLinks(records: readonly GuidelineRecord[], project: LintProject): Diagnostic[] {
  let known: ReadonlySet<string> | undefined;
  const exists = (path: string): boolean => {
    if (path === "") return true;
    known ??= new Set(project.files.flatMap((file) => [file, ...foldersAbove(file)]));
    return known.has(path) || (project.hasPath?.(path) ?? false);
  };
  const search = createSearch(project.files);
  return records.flatMap((record) => {
    if (record.source_type === "sample") return [];
    const scan = project.scanOf(record.source_file);
    return [...lostImports(record, { scan, exists, search }), ...lostLinks(record, { scan, exists, search })];
  });
}

interface Search {
  readonly scan: MarkdownScan | undefined;
  readonly exists: (path: string) => boolean;
  /** The only file of a name, if there is exactly one. */
  readonly search: (path: string) => string | undefined;
}

function lostImports(record: GuidelineRecord, { scan, exists, search }: Search): Diagnostic[] {
  // A plain AGENTS.md has no import syntax.
  if (record.tool === "agents") return [];
  const folder = record.tool === "kiro" ? "" : folderOf(record.source_file);
  return record.imports.flatMap(({ path: written, line }) => {
    if (!textFile.test(written) || isPlaceholder(written)) return [];
    const candidates = [folder, ""].map((base) => resolveImport(written, base));
    if (candidates.some((path) => path === undefined || exists(path))) return [];
    const found = search(written);
    const text = found && relativePath(found, folder);
    const hint = text === undefined ? "" : ` Did you mean ${quoteText(text)}?`;
    const message = `The import of ${quoteText(written)} names a file that the project does not have.${hint}`;
    const about = {
      rule: "import",
      code: "import_missing",
      message,
      fix: text === undefined ? undefined : { text },
    } as const;
    return [warningAbout(record, about, placeIn(scan, line, written))];
  });
}

/** The target of an inline link or image, or of a link's definition. */
const inlineLink = /\]\(\s*<?([^\s()<>]+)/g;
const definition = /^ {0,3}\[[^\]\n]{1,200}\]:\s+<?([^\s<>]+)/g;

function lostLinks(record: GuidelineRecord, search: Search): Diagnostic[] {
  const { scan } = search;
  if (scan === undefined) return [];
  const found = new Map<string, Diagnostic>();
  const first = Math.max(record.span.start_line, scan.bodyLine);
  for (let line = first; line <= Math.min(record.span.end_line, scan.lineCount); line += 1) {
    if (scan.kinds[line - 1] !== lineKinds.prose) continue;
    const text = lineText(scan, line);
    if (!text.includes("]")) continue;
    const visible = withoutCode(text.slice(0, 10_000));
    for (const match of [...visible.matchAll(inlineLink), ...visible.matchAll(definition)]) {
      const written = match[1] ?? "";
      if (found.has(written) || illustration.test(visible.slice(0, match.index))) continue;
      const lost = lostLink(written, folderOf(record.source_file), search);
      const column = match.index + match[0].length - written.length + 1;
      if (lost !== undefined)
        found.set(written, warningAbout(record, lost, { line, column, end_column: column + written.length }));
    }
  }
  return [...found.values()];
}

/** The finding about a link as written; undefined for one that leads somewhere. */
function lostLink(written: string, folder: string, { exists, search }: Search) {
  const target = targetOf(written);
  if (target === undefined) return undefined;
  if (candidatesOf(target, folder).some((path) => path === undefined || exists(path))) return undefined;
  const meant = search(target.path);
  const path = target.fromRoot ? `${target.slash}${meant}` : relativePath(meant ?? "", folder);
  const fix = meant === undefined ? undefined : { text: written.replace(target.path, () => path) };
  const hint = fix === undefined ? "" : ` Did you mean ${quoteText(fix.text)}?`;
  const message = `The link to ${quoteText(written)} leads to no file of the project.${hint}`;
  return { rule: "dangling-reference", code: "link_missing", message, fix } as const;
}

interface LinkTarget {
  /** As written, without its scheme, anchor and line. */
  readonly path: string;
  /** Whether the writer counts from the root of the project. */
  readonly fromRoot: boolean;
  readonly slash: "" | "/";
}

/** The path of a link into the project; undefined for an address, an anchor and an example. */
function targetOf(written: string): LinkTarget | undefined {
  const isRule = written.startsWith("mdc:");
  const withoutScheme = isRule ? written.slice(4) : written;
  if (/^(?:[a-z][a-z0-9+.-]*:|#|\/\/|~|\\)/i.test(withoutScheme) || isPlaceholder(withoutScheme))
    return undefined;
  const path = (withoutScheme.split(/[#?]/, 1)[0] ?? "").replace(/:\d+(?:-\d+)?$/, "");
  const isPath = /\.[a-z0-9]{1,10}$/i.test(path) || /^\.{0,2}\/./.test(path) || path.includes("/");
  if (path === "" || !isPath) return undefined;
  return { path, fromRoot: isRule || path.startsWith("/"), slash: path.startsWith("/") ? "/" : "" };
}

/** Words before a link that only shows how one is written. */
const illustration = /\b(?:examples?|e\.g|for instance)\b/i;

/** Where a link can lead: editors count from the file, and coding tools from the root. */
function candidatesOf({ path, slash }: LinkTarget, folder: string): (string | undefined)[] {
  const decoded = decode(path).replace(/\/+$/, "");
  if (slash === "/") return [resolveImport(decoded.replace(/^\/+/, ""), "")];
  const candidates = [folder, ""].map((base) => resolveImport(decoded, base));
  // A link above the root from there says nothing about the other reading.
  const inside = candidates.filter((place) => place !== undefined);
  return inside.length === 0 ? candidates : inside;
}

/** Text that stands for a path (`path/to/x`, `<name>`, `{id}`, `*`, `...`, `$DIR`), and installed packages. */
function isPlaceholder(path: string): boolean {
  return /[<>{}*$|]|(?:^|\/)node_modules\/|\.\.\.|…|^path\/|path\/to|(?:^|\/)(?:example|foo|bar|your-|my-|xxx)|^url$|^link$/i.test(
    path,
  );
}

function decode(path: string): string {
  return attempt(() => decodeURIComponent(path), path);
}

/** Names that many folders have; a file of such a name is no guess. */
const commonName =
  /^(?:readme|index|changelog|license|agents|claude|gemini|package|main|mod|config)\.[a-z]+$/i;

function createSearch(files: readonly string[]): (path: string) => string | undefined {
  let byName: Map<string, readonly string[]> | undefined;
  return (path) => {
    byName ??= Map.groupBy(files, nameIn);
    const name = nameIn(decode(path));
    const [only, ...others] = byName.get(name) ?? [];
    return others.length > 0 || commonName.test(name) ? undefined : only;
  };
}

function nameIn(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function foldersAbove(path: string): string[] {
  const folders: string[] = [];
  for (let at = path.indexOf("/"); at !== -1; at = path.indexOf("/", at + 1)) folders.push(path.slice(0, at));
  return folders;
}

/** A path as a link from a folder. */
function relativePath(path: string, folder: string): string {
  const from = folder === "" ? [] : folder.split("/");
  const to = path.split("/");
  let shared = 0;
  while (shared < from.length && shared < to.length - 1 && from[shared] === to[shared]) shared += 1;
  return [...from.slice(shared).map(() => ".."), ...to.slice(shared)].join("/");
}

function placeIn(scan: MarkdownScan | undefined, line: number, text: string) {
  const at = scan === undefined ? -1 : lineText(scan, line).indexOf(text);
  return at === -1 ? { line } : { line, column: at + 1, end_column: at + 1 + text.length };
}

function withoutCode(text: string): string {
  let result = text;
  for (const { from, to } of codeSpans(text))
    result = result.slice(0, from) + " ".repeat(to - from) + result.slice(to);
  return result;
}
