import type { GuidelineAdapter } from "../adapter.ts";
import { folderOf, holderOf } from "../guideline-record.ts";
import { frontMatterKeys } from "./front-matter-keys.ts";
import { declaredGlobs, parseSectionedFile, parseWholeFile } from "./whole-file.ts";

const file = /(?:^|\/)\.clinerules$/;
// The other folders that Cline keeps there hold no rules.
const rules = /(?:^|\/)\.clinerules\/(?!(?:workflows|hooks|skills)\/)(?:.*\/)?[^/]+\.(?:md|txt)$/s;

/** Cline: a file `.clinerules`, or a folder of that name with a guideline per file. */
export const clineAdapter: GuidelineAdapter = {
  name: "cline",
  source_type: "cline",
  folders: [".clinerules"],
  keys: frontMatterKeys.cline,
  matches: (path) => file.test(path) || rules.test(path),
  parse(source) {
    const isRule = !file.test(source.path);
    const scope = isRule ? holderOf(source.path, ".clinerules") : folderOf(source.path);
    const kind = { source_type: "cline", tool: "cline", scope, imports: "none" } as const;
    if (!isRule) return parseSectionedFile(source, kind);
    return parseWholeFile(source, kind, ({ data }) => {
      const globs = declaredGlobs(data.paths, "cline");
      return globs.length > 0
        ? { inclusion: "pattern", globs, tags: ["fileMatch"] }
        : { inclusion: "always", globs, tags: ["always"] };
    });
  },
};
