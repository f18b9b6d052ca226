import type { GuidelineAdapter } from "../adapter.ts";
import { folderOf, holderOf } from "../guideline-record.ts";
import { frontMatterKeys } from "./front-matter-keys.ts";
import { declaredGlobs, parseSectionedFile, parseWholeFile } from "./whole-file.ts";

const instructionFiles = /(?:^|\/)CLAUDE(?:\.local)?\.md$/;

/** Claude Code's instruction files: `CLAUDE.md` anywhere, `.claude/CLAUDE.md`, `CLAUDE.local.md`. */
export const claudeAdapter: GuidelineAdapter = {
  name: "claude",
  source_type: "fw_c",
  matches: (path) => instructionFiles.test(path),
  parse(source) {
    const folder = folderOf(source.path);
    const scope =
      folder === ".claude" || folder.endsWith("/.claude") ? holderOf(source.path, ".claude") : folder;
    return parseSectionedFile(source, { source_type: "fw_c", tool: "claude", scope, imports: "at" });
  },
};

const ruleFiles = /(?:^|\/)\.claude\/rules\/(?:.*\/)?[^/]+\.md$/s;

/**
 * Claude Code's rules, one guideline per file. `paths` is documented as a list; users also write a
 * string, or `globs`, so all of them are read. Without any, a rule is always loaded.
 */
export const claudeRulesAdapter: GuidelineAdapter = {
  name: "claude-rules",
  source_type: "fw_c",
  folders: [".claude/rules"],
  keys: frontMatterKeys.claude,
  matches: (path) => ruleFiles.test(path),
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
