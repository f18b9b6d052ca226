import type { GuidelineAdapter } from "../adapter.ts";
import { folderOf, holderOf } from "../guideline-record.ts";
import { type Declared, declaredGlobs, parseSectionedFile, parseWholeFile } from "./whole-file.ts";

const ruleFiles = /(?:^|\/)\.cursor\/rules\/(?:.*\/)?[^/]+\.mdc$/s;

/** Cursor's rules, one guideline per `.mdc` file, also in nested `.cursor` folders. */
export const cursorRulesAdapter: GuidelineAdapter = {
  name: "cursor-rules",
  source_type: "fw_b",
  matches: (path) => ruleFiles.test(path),
  parse(source) {
    const scope = holderOf(source.path, ".cursor");
    const kind = { source_type: "fw_b", tool: "cursor", scope, imports: "at" } as const;
    return parseWholeFile(source, kind, ({ data }) => declaredByCursor(data));
  },
};

/**
 * Cursor's type table: `alwaysApply` ignores the globs, globs attach a rule, a description lets the agent ask for it, and a rule
 * with none of these applies only when the user mentions it.
 */
function declaredByCursor(data: Readonly<Record<string, unknown>>): Declared {
  const globs = declaredGlobs(data.globs, "cursor");
  if (data.alwaysApply === true || data.alwaysApply === "true")
    return { inclusion: "always", globs, tags: ["always", "alwaysApply"] };
  if (globs.length > 0) return { inclusion: "pattern", globs, tags: ["fileMatch"] };
  const description = data.description;
  if (typeof description === "string" && description.trim() !== "")
    return { inclusion: "auto", globs, tags: ["auto", "manual"] };
  return { inclusion: "manual", globs, tags: ["manual"] };
}

const legacyFile = /(?:^|\/)\.cursorrules$/;

/**
 * Cursor's legacy `.cursorrules`: Cursor always loads it and ignores its front matter. Declared globs are kept for conversion.
 */
export const cursorrulesAdapter: GuidelineAdapter = {
  name: "cursorrules",
  source_type: "fw_b",
  matches: (path) => legacyFile.test(path),
  parse(source) {
    const scope = folderOf(source.path);
    const kind = { source_type: "fw_b", tool: "cursor", scope, imports: "none" } as const;
    return parseSectionedFile(source, kind, ({ data }) => ({
      inclusion: "always",
      globs: declaredGlobs(data.globs, "cursor"),
      tags: [],
    }));
  },
};
