import { lineKinds, lineText, type MarkdownScan } from "../../markdown/scan-markdown.ts";
import { headingsBetween } from "../../markdown/sections.ts";
import type { LineRange } from "../../model/task-list.ts";
import {
  isAcceptanceLine,
  isAcceptanceTitle,
  isStorySentence,
  isStoryTitle,
  storyBehindLabel,
} from "./labels.ts";

const mayBeStory =
  /^\s*(?:[-*+>]\s+)*["“«]?(?:\*\*|__|[*_])?(?:as\b|como\b|als\b|en tant\b|come\b|jako\b|作为|作為|身为|.{1,60}(?:として|로서)|как\b|як\b|أنا|ك)/iu;
/** "I want …" and "so that …" on lines of their own. */
const nextClause =
  /^(?:\*\*|__|[*_])?(?:i\b|we\b|so that\b|so\b|in order\b|quiero\b|quero\b|eu\b|para\b|möchte\b|damit\b|je\b|afin\b|我|以便|从而|從而)/iu;
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
    if (behind === undefined && title === undefined && stories.length === 0) {
      const story = unlabelledStory(scan, { from: line, to: lines.to });
      if (story !== undefined) return story;
    }
    if (behind === undefined) continue;
    const paragraph = paragraphAfter(scan, { from: line + 1, to: lines.to }, behind === "");
    const story = [behind, ...paragraph].join(" ").trim();
    if (story !== "") stories.push(story);
  }
  return stories.length === 0 ? undefined : stories.join("\n");
}

/** The sentence that starts at a line, where it is a story by its words; its clauses may stand apart. */
function unlabelledStory(scan: MarkdownScan, lines: LineRange): string | undefined {
  if (!mayBeStory.test(lineText(scan, lines.from))) return undefined;
  const clauses: string[] = [];
  for (let line = lines.from; line <= Math.min(lines.to, lines.from + 12); line += 1) {
    const raw = lineText(scan, line).trim();
    if (raw === "") continue;
    if (scan.kinds[line - 1] !== lineKinds.prose || /^#{1,6}\s/.test(raw) || isAcceptanceLine(raw)) break;
    const text = raw.replace(/^(?:[-*+>]\s+)+/, "");
    const follows = clauses.length > 0 && lineText(scan, line - 1).trim() !== "" && text === raw;
    if (clauses.length > 0 && !follows && !nextClause.test(text)) break;
    if (listMark.test(text)) break;
    clauses.push(text.replace(/(?:\*\*|__)/g, ""));
  }
  const story = clauses.join(" ").trim();
  return isStorySentence(story) ? story : undefined;
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
