import type { GuidelineAdapter } from "../adapter.ts";
import { folderOf } from "../folders.ts";
import { parseSectionedFile } from "../sectioned-file.ts";

const sources = /(?:^|\/)GEMINI\.md$/;

/** Gemini CLI: `GEMINI.md` anywhere; a nested file applies to its folder. */
export const geminiAdapter: GuidelineAdapter = {
  name: "gemini",
  source_type: "gemini",
  matches: (path) => sources.test(path),
  parse: (source) =>
    parseSectionedFile(source, {
      source_type: "gemini",
      tool: "gemini",
      scope: folderOf(source.path),
      imports: "at",
    }),
};
