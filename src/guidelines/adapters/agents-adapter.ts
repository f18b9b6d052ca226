import type { GuidelineAdapter } from "../adapter.ts";
import { parseSectionedFile } from "../convert/sectioned-file.ts";
import { folderOf } from "../folders.ts";

const sources = /(?:^|\/)AGENTS(?:\.override)?\.md$/;

/** `AGENTS.md` anywhere, and Codex's `AGENTS.override.md`; a nested file applies to its folder. */
export const agentsAdapter: GuidelineAdapter = {
  name: "agents",
  source_type: "agents",
  matches: (path) => sources.test(path),
  parse(source) {
    const scope = folderOf(source.path);
    // AGENTS.md imports nothing by itself; where a CLAUDE.md imports it, Claude Code reads on from here.
    return parseSectionedFile(source, { source_type: "agents", tool: "agents", scope, imports: "at" });
  },
};
