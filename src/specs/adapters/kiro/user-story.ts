import { lineKinds, lineText, type MarkdownScan } from "../../markdown/scan-markdown.ts";
import { headingsBetween } from "../../markdown/sections.ts";
import type { LineRange } from "../../task-list.ts";
import { isAcceptanceLine, isAcceptanceTitle, isStoryTitle, storyBehindLabel } from "./labels.ts";

const listMark = /^\d+(?:\.\d+)*[.)]?\s/;

/**
 * The user story of a requirement, in front of its acceptance criteria: the paragraph behind
 * `**User Story:**` or its translations, or below a heading that says so. Several are joined by a
 * line feed.
 */
export function userStoryOf(scan: MarkdownScan, lines: LineRange): string | undefined {
  const titles = new Map(headingsBetween(scan, lines.from, lines.to).map(({ line, title }) => [line, title]));
  const stories: string[] = [];
  for (let line = lines.from; line <= lines.to; line += 1) {
    if (scan.kinds[line - 1] !== lineKinds.prose) continue;
    const title = titles.get(line);
    const text = lineText(scan, line);
    if (title === undefined ? isAcceptanceLine(text) : isAcceptanceTitle(title)) break;
    const behind = title === undefined ? storyBehindLabel(text) : isStoryTitle(title) ? "" : undefined;
    if (behind === undefined) continue;
    const paragraph = paragraphAfter(scan, { from: line + 1, to: lines.to }, behind === "");
    const story = [behind, ...paragraph].join(" ").trim();
    if (story !== "") stories.push(story);
  }
  return stories.length === 0 ? undefined : stories.join("\n");
}

/** The lines of the paragraph that starts at `from`, behind blank lines where `skipsBlank`. */
function paragraphAfter(scan: MarkdownScan, lines: LineRange, skipsBlank: boolean): string[] {
  const paragraph: string[] = [];
  for (let line = lines.from; line <= lines.to; line += 1) {
    const text = lineText(scan, line).trim().replace(/^>\s?/, "");
    if (text === "" && skipsBlank && paragraph.length === 0) continue;
    if (text === "" || /^#{1,6}\s/.test(text) || scan.kinds[line - 1] !== lineKinds.prose) break;
    if (isAcceptanceLine(text) || listMark.test(text) || storyBehindLabel(text) !== undefined) break;
    paragraph.push(text);
  }
  return paragraph;
}
