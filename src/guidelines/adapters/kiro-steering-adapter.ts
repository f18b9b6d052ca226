import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { splitOutsideBraces } from "../../specs/markdown/characters.ts";
import { type FrontMatter, lineOfKey } from "../../specs/markdown/front-matter.ts";
import type { GuidelineAdapter, Inclusion } from "../adapter.ts";
import { holderOf } from "../guideline-record.ts";
import { anyOf, frontMatterKeys, placeOfValue, unknownKeys } from "./front-matter-keys.ts";
import { type Declared, declaredGlobs, parseWholeFile } from "./whole-file.ts";

const sources = /(?:^|\/)\.kiro\/steering\/(?:.*\/)?[^/]+\.md$/s;
const { inclusion: written } = frontMatterKeys.kiro;
const inclusions = new Map<string, Inclusion>(
  written.map((value) => [value.toLowerCase(), value === "fileMatch" ? "pattern" : value]),
);
const tags: Readonly<Record<Inclusion, readonly string[]>> = {
  always: ["always"],
  pattern: ["fileMatch"],
  auto: ["auto", "manual"],
  manual: ["manual"],
};

/** Kiro's steering files, one guideline each. Without an `inclusion`, Kiro always loads them. */
export const kiroSteeringAdapter: GuidelineAdapter = {
  name: "kiro-steering",
  source_type: "steering",
  folders: [".kiro/steering"],
  keys: frontMatterKeys.kiro,
  matches: (path) => sources.test(path),
  parse(source) {
    const scope = holderOf(source.path, ".kiro");
    const kind = { source_type: "steering", tool: "kiro", scope, imports: "file-reference" } as const;
    return parseWholeFile(source, kind, (frontMatter) => declaredByKiro(source.path, frontMatter));
  },
};

function declaredByKiro(path: string, frontMatter: FrontMatter): Declared {
  const { data, raw } = frontMatter;
  const diagnostics: Diagnostic[] = unknownKeys("kiro", { path, frontMatter });
  const warn = (key: string, code: string, message: string): void => {
    const rule = code === "comma_list" ? "glob-no-match" : "front-matter";
    diagnostics.push({
      severity: "warning",
      rule,
      code,
      message,
      path,
      line: lineOfKey(raw, key),
      field: key,
    });
  };
  const globs = declaredGlobs(data.fileMatchPattern, "kiro");
  const inclusion = inclusions.get(String(data.inclusion ?? "always").toLowerCase());
  if (inclusion === undefined)
    warn("inclusion", "inclusion_unknown", `inclusion must be ${anyOf(written)}; always is assumed.`);
  if (inclusion === "pattern" && globs.length === 0)
    warn("inclusion", "pattern_missing", "inclusion is fileMatch, but there is no fileMatchPattern.");
  if (inclusion !== "pattern" && globs.length > 0)
    warn("fileMatchPattern", "pattern_unused", "fileMatchPattern counts only with inclusion: fileMatch.");
  const missing = ["name", "description"].filter((key) => typeof data[key] !== "string");
  if (inclusion === "auto" && missing.length > 0)
    warn(
      "inclusion",
      "description_missing",
      `inclusion is auto, but there is no ${missing.join(" and no ")} by which Kiro could choose the file.`,
    );
  const list = globs.find((glob) => splitOutsideBraces(glob).length > 1);
  if (list !== undefined && inclusion === "pattern") {
    const parts = splitOutsideBraces(list).map((part) => JSON.stringify(part.trim()));
    const text = `[${parts.join(", ")}]`;
    warn(
      "fileMatchPattern",
      "comma_list",
      `Kiro takes a comma list for one pattern, which matches nothing; write ${text.slice(0, 300)}.`,
    );
    const place = placeOfValue({ frontMatter }, "fileMatchPattern");
    const warned = diagnostics.pop();
    if (warned !== undefined)
      diagnostics.push({ ...warned, ...place, ...(place.column !== undefined && { fix: { text } }) });
  }
  return { inclusion: inclusion ?? "always", globs, tags: tags[inclusion ?? "always"], diagnostics };
}
