import type { DraftMention } from "../../adapter.ts";
import { lineKinds, lineText, type MarkdownScan } from "../../markdown/scan-markdown.ts";
import { toMentionPath } from "../../model/mentions.ts";

export const annotationKinds = ["generate", "describe", "use", "test", "doc"] as const;
export type AnnotationKind = (typeof annotationKinds)[number];

/** An annotation of Tessl's: `[@test](../a.test.ts)`, or `[@test] ../a.test.ts` in inline code. */
export interface Annotation {
  readonly kind: AnnotationKind;
  /** As written: a path, a package name or a glob. */
  readonly target: string;
  readonly line: number;
}

const annotation =
  /\[@(generate|describe|use|test|doc)\](?:\(([^()\s]{1,512})\)|[ \t]{1,8}([^\s`()[\]]{1,512}))/g;

/** The annotations of a range of lines, in order. Headings, code fences and comments hold none. */
export function annotationsIn(scan: MarkdownScan, from: number, to: number): Annotation[] {
  const found: Annotation[] = [];
  // A text without the mark has none; that is the case for whatever is not Tessl's.
  if (!scan.text.includes("[@")) return found;
  const headingEnds = new Map(scan.headings.map((heading) => [heading.line, heading.end_line]));
  for (let line = from; line <= to; line += 1) {
    const headingEnd = headingEnds.get(line);
    if (headingEnd !== undefined) line = headingEnd;
    if (headingEnd !== undefined || scan.kinds[line - 1] !== lineKinds.prose) continue;
    for (const [, kind, linked, written] of lineText(scan, line).matchAll(annotation))
      found.push({ kind: kind as AnnotationKind, target: linked ?? written ?? "", line });
  }
  return found;
}

/** Whether a line holds annotations and nothing else. */
export function isAnnotationLine(text: string): boolean {
  return text.includes("[@") && text.replace(annotation, "").replace(/[`\s*+-]/g, "") === "";
}

/** The file that an annotation names; packages and globs are not files. */
export function toMention({ kind, target, line }: Annotation): DraftMention | undefined {
  const path = toMentionPath(target);
  if (path === undefined || kind === "doc") return undefined;
  return { path, line, role: kind === "test" ? "test" : "code" };
}
