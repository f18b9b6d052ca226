import type { GuidelineAdapter } from "../adapter.ts";
import { parseSectionedFile } from "../convert/sectioned-file.ts";

/** Zed: `.rules` and `AGENT.md` in the root of a project. */
export const zedAdapter: GuidelineAdapter = {
  name: "zed",
  source_type: "zed",
  matches: (path) => path === ".rules" || path === "AGENT.md",
  parse: (source) =>
    parseSectionedFile(source, { source_type: "zed", tool: "zed", scope: "", imports: "none" }),
};
