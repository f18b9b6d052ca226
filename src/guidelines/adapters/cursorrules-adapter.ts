import type { GuidelineAdapter } from "../adapter.ts";
import { parseSectionedFile } from "../convert/sectioned-file.ts";
import { folderOf } from "../folders.ts";
import { declaredGlobs } from "../match/declared-globs.ts";

const sources = /(?:^|\/)\.cursorrules$/;

/**
 * Cursor's legacy `.cursorrules`: always loaded, whatever its front matter says. Globs that people
 * declare there all the same are kept, for conversion.
 */
export const cursorrulesAdapter: GuidelineAdapter = {
  name: "cursorrules",
  source_type: "fw_b",
  matches: (path) => sources.test(path),
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
