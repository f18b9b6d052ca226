import type { GuidelineAdapter } from "../adapter.ts";
import { type Declared, parseWholeFile } from "../convert/whole-file.ts";
import { holderOf } from "../folders.ts";
import { declaredGlobs } from "../match/declared-globs.ts";

const sources = /(?:^|\/)\.cursor\/rules\/(?:.*\/)?[^/]+\.mdc$/s;

/** Cursor's rules, one guideline per `.mdc` file, also in nested `.cursor` folders. */
export const cursorRulesAdapter: GuidelineAdapter = {
  name: "cursor-rules",
  source_type: "fw_b",
  matches: (path) => sources.test(path),
  parse(source) {
    const scope = holderOf(source.path, ".cursor");
    const kind = { source_type: "fw_b", tool: "cursor", scope, imports: "at" } as const;
    return parseWholeFile(source, kind, ({ data }) => declaredByCursor(data));
  },
};

/**
 * Cursor's type table: `alwaysApply` ignores the globs, globs attach a rule, a description lets the
 * agent ask for it, and a rule with none of them waits to be mentioned.
 *
 * @see FORMATS.md, Cursor
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
