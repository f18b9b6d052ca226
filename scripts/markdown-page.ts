import { readFile } from "node:fs/promises";
import { type Node, Parser } from "commonmark";

export interface PageLink {
  /** The target in the text: `docs/cli.md#exit-codes`, `https://…`. */
  readonly target: string;
  readonly line: number;
}

export interface PageFence {
  readonly language: string;
  readonly code: string;
  /** 1-based line of the first line of code. */
  readonly line: number;
}

/** The parts of a Markdown file that the checks of the documentation need. */
export interface MarkdownPage {
  readonly links: readonly PageLink[];
  readonly fences: readonly PageFence[];
  readonly anchors: ReadonlySet<string>;
}

export async function readMarkdownPage(file: string): Promise<MarkdownPage> {
  const links: PageLink[] = [];
  const fences: PageFence[] = [];
  const headings: string[] = [];
  const walker = new Parser().parse(await readFile(file, "utf8")).walker();
  for (let step = walker.next(); step; step = walker.next()) {
    const { node } = step;
    if (!step.entering) continue;
    if ((node.type === "link" || node.type === "image") && node.destination) {
      links.push({ target: node.destination, line: lineOf(node) });
    } else if (node.type === "code_block" && node.info !== null) {
      fences.push({ language: node.info.trim(), code: node.literal ?? "", line: lineOf(node) + 1 });
    } else if (node.type === "heading") {
      headings.push(textOf(node));
    }
  }
  return { links, fences, anchors: toAnchors(headings) };
}

/** Returns the anchors that GitHub gives to headings: a repeated one gets `-1`, `-2`, …. */
export function toAnchors(headings: readonly string[]): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const heading of headings) {
    const base = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
      .replaceAll(" ", "-");
    let anchor = base;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${base}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** The line of a node: only blocks have positions, so an inline node gets that of the block around it. */
function lineOf(node: Node): number {
  let block = node;
  while (block.sourcepos === undefined && block.parent) block = block.parent;
  return block.sourcepos?.[0][0] ?? 1;
}

function textOf(node: Node): string {
  if (node.literal !== null) return node.literal;
  let text = "";
  for (let child = node.firstChild; child; child = child.next) text += textOf(child);
  return text;
}
