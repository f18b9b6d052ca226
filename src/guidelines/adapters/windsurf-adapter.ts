import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { type FrontMatter, lineOfKey } from "../../specs/markdown/front-matter.ts";
import type { GuidelineAdapter, Inclusion } from "../adapter.ts";
import { folderOf, holderOf } from "../guideline-record.ts";
import { anyOf, frontMatterKeys, unknownKeys } from "./front-matter-keys.ts";
import { type Declared, declaredGlobs, parseSectionedFile, parseWholeFile } from "./whole-file.ts";

const rules = /(?:^|\/)\.windsurf\/rules\/(?:.*\/)?[^/]+\.md$/s;
const legacy = /(?:^|\/)\.windsurfrules$/;
const meanings: Readonly<Record<(typeof frontMatterKeys.windsurf.trigger)[number], Inclusion>> = {
  always_on: "always",
  glob: "pattern",
  model_decision: "auto",
  manual: "manual",
};
const triggers = new Map<string, Inclusion>(Object.entries(meanings));
const tags: Readonly<Record<Inclusion, readonly string[]>> = {
  always: ["always"],
  pattern: ["fileMatch"],
  auto: ["auto", "manual"],
  manual: ["manual"],
};

/** Windsurf: `.windsurf/rules`, one guideline per file, loaded by its `trigger`; and `.windsurfrules`, always. */
export const windsurfAdapter: GuidelineAdapter = {
  name: "windsurf",
  source_type: "windsurf",
  folders: [".windsurf/rules"],
  keys: frontMatterKeys.windsurf,
  matches: (path) => rules.test(path) || legacy.test(path),
  parse(source) {
    const isRule = rules.test(source.path);
    const scope = isRule ? holderOf(source.path, ".windsurf") : folderOf(source.path);
    const kind = { source_type: "windsurf", tool: "windsurf", scope, imports: "none" } as const;
    return isRule
      ? parseWholeFile(source, kind, (frontMatter) => declaredByWindsurf(source.path, frontMatter))
      : parseSectionedFile(source, kind);
  },
};

/** A rule without a trigger is loaded when the user mentions it. */
function declaredByWindsurf(path: string, frontMatter: FrontMatter): Declared {
  const { data, raw } = frontMatter;
  const globs = declaredGlobs(data.globs, "windsurf");
  const written = data.trigger ?? (globs.length > 0 ? "glob" : "manual");
  const inclusion = triggers.get(String(written).toLowerCase());
  const diagnostics: Diagnostic[] = unknownKeys("windsurf", { path, frontMatter });
  const warn = (code: string, message: string): void => {
    const line = lineOfKey(raw, "trigger");
    diagnostics.push({
      severity: "warning",
      rule: "front-matter",
      code,
      message,
      path,
      line,
      field: "trigger",
    });
  };
  if (inclusion === undefined)
    warn("trigger_unknown", `trigger must be ${anyOf([...triggers.keys()])}; manual is assumed.`);
  if (inclusion === "pattern" && globs.length === 0)
    warn("pattern_missing", "trigger is glob, but there are no globs.");
  return { inclusion: inclusion ?? "manual", globs, tags: tags[inclusion ?? "manual"], diagnostics };
}
