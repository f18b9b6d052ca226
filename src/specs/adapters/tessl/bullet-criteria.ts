import type { SpecMetadata } from "../../../protocol/spec-block.ts";
import { listItemEnd, listItemText, listMarker } from "../../markdown/list-item.ts";
import { lineKinds, lineText, type MarkdownScan } from "../../markdown/scan-markdown.ts";
import { classifyCriterion } from "../../model/ears.ts";
import { joinSpace } from "../../model/join-space.ts";

const annotationMark = /`?\[@\w+\](?:\([^()\s]{1,512}\)|[ \t]+[^\s`()[\]]{1,512})`?/g;

/** The outer list items of a capability: each states one behaviour, often with the test of it. */
export function bulletCriteria(
  scan: MarkdownScan,
  from: number,
  to: number,
): Pick<SpecMetadata, "acceptance_criteria" | "ears_patterns"> {
  const found: { text: string; line: number }[] = [];
  for (let line = from; line <= to; line += 1) {
    if (scan.kinds[line - 1] !== lineKinds.prose || !listMarker.test(lineText(scan, line))) continue;
    const end = listItemEnd(scan, line, to);
    const item = listItemText(scan, line, end);
    const text = joinSpace(item.includes("[@") ? item.replace(annotationMark, "") : item);
    if (text !== "") found.push({ text, line });
    line = end;
  }
  if (found.length === 0) return {};
  const classified = found.map((item) => ({ item, ...classifyCriterion(item.text) }));
  return {
    acceptance_criteria: classified.map(({ pattern, trigger, response }) => ({ pattern, trigger, response })),
    ears_patterns: classified.map(({ item, pattern }, index) => ({
      pattern,
      ...item,
      number: String(index + 1),
    })),
  };
}
