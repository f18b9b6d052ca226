import type { GuidelineAdapter } from "../adapter.ts";
import { parseWholeFile } from "../convert/whole-file.ts";
import { holderOf } from "../folders.ts";
import { declaredGlobs } from "../match/declared-globs.ts";

const sources = /(?:^|\/)\.claude\/rules\/(?:.*\/)?[^/]+\.md$/s;

/**
 * Claude Code's rules, one guideline per file. `paths` is documented as a list; users also write a
 * string, or `globs`, so all of them are read. Without any, a rule is always loaded.
 */
export const claudeRulesAdapter: GuidelineAdapter = {
  name: "claude-rules",
  source_type: "fw_c",
  matches: (path) => sources.test(path),
  parse(source) {
    const scope = holderOf(source.path, ".claude");
    const kind = { source_type: "fw_c", tool: "claude", scope, imports: "at" } as const;
    return parseWholeFile(source, kind, ({ data }) => {
      const globs = declaredGlobs(data.paths ?? data.globs, "claude");
      return globs.length > 0
        ? { inclusion: "pattern", globs, tags: ["fileMatch"] }
        : { inclusion: "always", globs, tags: ["always"] };
    });
  },
};
