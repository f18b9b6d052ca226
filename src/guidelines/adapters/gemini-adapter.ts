import type { GuidelineAdapter } from "../adapter.ts";
import { parseSectionedFile } from "../convert/sectioned-file.ts";
import { folderOf } from "../folders.ts";

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
