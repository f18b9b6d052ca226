import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { FrontMatter } from "../../specs/markdown/front-matter.ts";
import type { GuidelineAdapter } from "../adapter.ts";
import { folderOf, holderOf } from "../guideline-record.ts";
import { frontMatterKeys, keyWarning, placeOfValue, unknownKeys } from "./front-matter-keys.ts";
import { type Declared, declaredGlobs, parseSectionedFile, parseWholeFile } from "./whole-file.ts";

const ruleFiles = /(?:^|\/)\.cursor\/rules\/(?:.*\/)?[^/]+\.mdc$/s;

/** Cursor's rules, one guideline per `.mdc` file, also in nested `.cursor` folders. */
export const cursorRulesAdapter: GuidelineAdapter = {
  name: "cursor-rules",
  source_type: "fw_b",
  folders: [".cursor/rules"],
  keys: frontMatterKeys.cursor,
  matches: (path) => ruleFiles.test(path),
  parse(source) {
    const scope = holderOf(source.path, ".cursor");
    const kind = { source_type: "fw_b", tool: "cursor", scope, imports: "at" } as const;
    return parseWholeFile(source, kind, (frontMatter) => ({
      ...declaredByCursor(frontMatter.data),
      diagnostics: faultsOfCursor({ path: source.path, frontMatter }),
    }));
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

function faultsOfCursor(checked: { readonly path: string; readonly frontMatter: FrontMatter }): Diagnostic[] {
  const { data } = checked.frontMatter;
  const faults = unknownKeys("cursor", checked);
  if (typeof data.alwaysApply === "string" && /^(?:true|false)$/.test(data.alwaysApply)) {
    const message = `alwaysApply is a text; Cursor takes ${data.alwaysApply} without quotes.`;
    const found = keyWarning(checked, "alwaysApply", { code: "boolean_expected", message });
    const place = placeOfValue(checked, "alwaysApply");
    faults.push({
      ...found,
      ...place,
      ...(place.column !== undefined && { fix: { text: data.alwaysApply } }),
    });
  }
  // Cursor's editor writes all three keys for a rule that only people attach.
  if (data.alwaysApply === false && !("globs" in data) && !("description" in data)) {
    const message =
      "The rule has neither globs nor a description, so only a prompt that mentions it loads it.";
    faults.push(keyWarning(checked, "alwaysApply", { code: "description_missing", message }));
  }
  return faults;
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
