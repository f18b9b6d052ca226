import type { ParsedSpecs, SpecAdapter, SpecSource } from "../../adapter.ts";
import { kiroDocumentOf } from "./kiro-path.ts";
import { parseBugfix } from "./parse-bugfix.ts";
import { parseDesign } from "./parse-design.ts";
import { parseRequirements } from "./parse-requirements.ts";
import { parseTasks } from "./parse-tasks.ts";
import { writeKiro } from "./write-kiro.ts";

/** Kiro and cc-sdd: `.kiro/specs/<feature>/{requirements,bugfix,design,tasks}.md`. */
export const kiroAdapter: SpecAdapter = {
  name: "kiro",
  framework: "fw_a",
  matches: (path) => kiroDocumentOf(path) !== undefined,
  parse,
  write: writeKiro,
};

function parse(source: SpecSource): ParsedSpecs {
  const document = kiroDocumentOf(source.path);
  if (document === undefined) return { drafts: [], diagnostics: [] };
  switch (document.kind) {
    case "requirements":
      return parseRequirements(source, document);
    case "bugfix":
      return parseBugfix(source, document);
    case "design":
      return parseDesign(source, document);
    case "tasks":
      return parseTasks(source, document);
  }
}
