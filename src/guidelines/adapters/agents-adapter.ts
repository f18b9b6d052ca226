import type { GuidelineAdapter } from "../adapter.ts";
import { folderOf } from "../guideline-record.ts";
import { parseSectionedFile } from "./whole-file.ts";

const agentsFiles = /(?:^|\/)AGENTS(?:\.override)?\.md$/;

/** `AGENTS.md` anywhere, and Codex's `AGENTS.override.md`; a nested file applies to its folder. */
export const agentsAdapter: GuidelineAdapter = {
  name: "agents",
  source_type: "agents",
  matches: (path) => agentsFiles.test(path),
  parse(source) {
    const scope = folderOf(source.path);
    // AGENTS.md has no import syntax. If a CLAUDE.md imports it, however, Claude Code follows the imports in it.
    return parseSectionedFile(source, { source_type: "agents", tool: "agents", scope, imports: "at" });
  },
};

const geminiFiles = /(?:^|\/)GEMINI\.md$/;

/** Gemini CLI: `GEMINI.md` anywhere; a nested file applies to its folder. */
export const geminiAdapter: GuidelineAdapter = {
  name: "gemini",
  source_type: "gemini",
  matches: (path) => geminiFiles.test(path),
  parse: (source) =>
    parseSectionedFile(source, {
      source_type: "gemini",
      tool: "gemini",
      scope: folderOf(source.path),
      imports: "at",
    }),
};

/** Zed: `.rules` and `AGENT.md` in the root of a project. */
export const zedAdapter: GuidelineAdapter = {
  name: "zed",
  source_type: "zed",
  matches: (path) => path === ".rules" || path === "AGENT.md",
  parse: (source) =>
    parseSectionedFile(source, { source_type: "zed", tool: "zed", scope: "", imports: "none" }),
};
