import type { GuidelineAdapter } from "../adapter.ts";
import { parseSectionedFile } from "../convert/sectioned-file.ts";
import { folderOf, holderOf } from "../folders.ts";

const sources = /(?:^|\/)CLAUDE(?:\.local)?\.md$/;

/** Claude Code's instruction files: `CLAUDE.md` anywhere, `.claude/CLAUDE.md`, `CLAUDE.local.md`. */
export const claudeAdapter: GuidelineAdapter = {
  name: "claude",
  source_type: "fw_c",
  matches: (path) => sources.test(path),
  parse(source) {
    const folder = folderOf(source.path);
    const scope =
      folder === ".claude" || folder.endsWith("/.claude") ? holderOf(source.path, ".claude") : folder;
    return parseSectionedFile(source, { source_type: "fw_c", tool: "claude", scope, imports: "at" });
  },
};
