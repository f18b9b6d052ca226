import type { ParsedSpecs, SpecSource } from "../../adapter.ts";
import { readFrontMatter } from "../../markdown/front-matter.ts";
import { frontMatterDiagnostics } from "../../markdown/front-matter-diagnostics.ts";
import { type MarkdownScan, scanMarkdown, textOfLines } from "../../markdown/scan-markdown.ts";
import { withoutBlankEdges } from "../../markdown/sections.ts";
import { unclosedDiagnostics } from "../../markdown/unclosed-diagnostics.ts";
import { blockTitle } from "../../model/block-title.ts";
import { mentionsIn } from "../../model/mentions.ts";
import { type CustomDefaults, fileId, recordDraft } from "./record-draft.ts";

/** A Markdown file is one block: its front matter has the fields, its text is the content. */
export function readMarkdownFile(source: SpecSource, defaults: CustomDefaults): ParsedSpecs {
  const { path } = source;
  const scan = scanMarkdown(source.text);
  const { data, raw, problems } = readFrontMatter(scan);
  const { from, to } = withoutBlankEdges(scan, scan.bodyLine, scan.lineCount);
  const body = textOfLines(scan, from, to);
  const found = [...frontMatterDiagnostics(path, problems), ...unclosedDiagnostics(scan, path)];
  if (body === "" && raw.trim() === "") return { drafts: [], diagnostics: found };
  const fileName = path.slice(path.lastIndexOf("/") + 1).replace(/\.[^.]*$/, "");
  const title = scan.headings.find((heading) => heading.title !== "")?.title ?? blockTitle(fileName);
  const { draft, diagnostics } = recordDraft(
    {
      value: { title: title || "Untitled", ...data, ...(body !== "" && { content: body }) },
      path,
      startLine: body === "" ? 1 : from,
      endLine: body === "" ? scan.lineCount : to,
      lineOf: (field) => lineOfKey(scan, field),
      fallbackId: fileId(path),
      mentions: mentionsIn(scan, from, to),
    },
    { spec_type: "requirement", ...defaults },
  );
  return { drafts: draft === undefined ? [] : [draft], diagnostics: [...found, ...diagnostics] };
}

/** The line of a key of the front matter; line 1 where it has no such key. */
function lineOfKey(scan: MarkdownScan, key: string): number {
  for (let line = 2; line < scan.bodyLine; line += 1) {
    const text = textOfLines(scan, line, line);
    if (text.startsWith(key) && /^[ \t]*:/.test(text.slice(key.length))) return line;
  }
  return 1;
}
