import { lineKinds, lineText, type MarkdownScan } from "../../markdown/scan-markdown.ts";
import { headingsBetween } from "../../markdown/sections.ts";
import { type KiroDocument, requirementTarget } from "./kiro-path.ts";
import { codeKey } from "./requirement-references.ts";
import type { RequirementSection } from "./requirement-sections.ts";

/** `NFR-1`, `FR-001`, `NFR-PERF-006`, `AC-1.2`, `US 3`, `FR-A1`. */
const code =
  "((?:\\p{Lu}{1,8}(?:[-_]\\p{Lu}{1,12}){0,3}[-_]?|(?:US|FR|NFR|AC|SC|BR|RF|RNF) )\\d+(?:\\.\\d+)*)";
const closing = "(?:\\*\\*|__|\\]|`)";
/** A code that opens a heading, list item, paragraph or row of a table, and ends with a mark. */
const statement = new RegExp(
  `^[ \\t>]*(?:[-*+][ \\t]+|\\d{1,4}[.)][ \\t]+|\\|[ \\t]*)?(?:\\[[ xX]\\][ \\t]+)?(?:\\*\\*|__|\\[|\`)?${code}(?:${closing}|[ \\t]*(?:[:：.)|(–—-]|$))`,
  "u",
);
const storyNumber = /^(?:user )?story\s+(\d+)/i;

/**
 * The ids by which links name the statements of a section: `US-2` and `NFR-1` of its heading or of what
 * it lists. A dotted code is found by its stem, too, as the number of a criterion is.
 */
export function statementAliases(
  scan: MarkdownScan,
  section: RequirementSection,
  document: KiroDocument,
): string[] {
  const { heading, from, to } = section;
  const found = new Set<string>();
  const add = (text: string): void => {
    const written = statement.exec(text)?.[1];
    if (written === undefined) return;
    found.add(codeKey(written.split(".")[0] ?? written));
  };
  const title = heading.title.replace(/^[*_\s]+/, "");
  add(title);
  const story = storyNumber.exec(title)?.[1];
  if (story !== undefined) found.add(codeKey(`US-${story}`));
  const headings = new Map(headingsBetween(scan, from, to).map((each) => [each.line, each.title]));
  for (let line = from; line <= to; line += 1) {
    if (scan.kinds[line - 1] === lineKinds.prose) add(headings.get(line) ?? lineText(scan, line));
  }
  return [...found].map((key) => requirementTarget(document.feature, key));
}
