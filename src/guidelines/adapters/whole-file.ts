import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { SourceType } from "../../protocol/guideline.ts";
import { type FrontMatter, readFrontMatter } from "../../specs/markdown/front-matter.ts";
import { type MarkdownScan, scanMarkdown, textOfLines } from "../../specs/markdown/scan-markdown.ts";
import { withoutBlankEdges } from "../../specs/markdown/sections.ts";
import type { GuidelineDraft, GuidelineTool, Inclusion, ParsedGuidelines } from "../adapter.ts";
import { type ImportSyntax, importsIn } from "../guideline-imports.ts";
import { managedFileOf } from "../sync/managed-part.ts";
import { cleanTitle, textDiagnostics, titleOfFile } from "../text-diagnostics.ts";

/** The properties of a file that its format and path give. */
export interface FileKind {
  readonly source_type: SourceType;
  readonly tool: GuidelineTool;
  readonly scope: string;
  readonly imports: ImportSyntax;
}

/** The declarations of a file's front matter. */
export interface Declared {
  readonly inclusion: Inclusion;
  readonly globs: readonly string[];
  readonly tags: readonly string[];
  readonly diagnostics?: readonly Diagnostic[];
}

/** A file that is one guideline: steering, `.mdc`, `.claude/rules`. A blank file is none. */
export function parseWholeFile(
  source: { readonly path: string; readonly text: string },
  kind: FileKind,
  declare: (frontMatter: FrontMatter) => Declared,
): ParsedGuidelines {
  const scan = scanMarkdown(source.text);
  const frontMatter = readFrontMatter(scan);
  const diagnostics = textDiagnostics(source.path, scan, frontMatter);
  if (source.text.trim() === "") return { drafts: [], diagnostics };
  const declared = declare(frontMatter);
  const lines = { from: frontMatter.bodyLine, to: scan.lineCount };
  const body = titledBody(scan, lines);
  const named = [frontMatter.data.title, frontMatter.data.name].find((name) => typeof name === "string");
  const fallback = cleanTitle(singleLine(String(named ?? "")), titleOfFile(source.path));
  const managed = managedFileOf(source.text);
  const draft: GuidelineDraft = {
    title: cleanTitle(body.title ?? "", fallback),
    content: body.content,
    source_type: kind.source_type,
    tool: kind.tool,
    tags: declared.tags,
    inclusion: declared.inclusion,
    globs: declared.globs,
    scope: kind.scope,
    frontmatter: frontMatter.data,
    span: { start_line: 1, end_line: scan.lineCount },
    imports: importsIn(scan, kind.imports, lines),
    whole_file: true,
    ...(managed !== undefined && { managed: managed.source }),
  };
  return { drafts: [draft], diagnostics: [...diagnostics, ...(declared.diagnostics ?? [])] };
}

/**
 * The title of a stretch of lines, and its content. A first-level heading at the start is the title and not part of the
 * content; a later one is both.
 */
export function titledBody(
  scan: MarkdownScan,
  lines: { readonly from: number; readonly to: number },
): { readonly title?: string; readonly content: string } {
  const { from, to } = withoutBlankEdges(scan, lines.from, lines.to);
  const heading = scan.headings.find((each) => each.level === 1 && each.line >= from && each.line <= to);
  if (heading === undefined) return { content: toContent(textOfLines(scan, from, to)) };
  if (heading.line !== from) return { title: heading.title, content: toContent(textOfLines(scan, from, to)) };
  const rest = withoutBlankEdges(scan, heading.end_line + 1, to);
  return { title: heading.title, content: toContent(textOfLines(scan, rest.from, rest.to)) };
}

/** Blank text is no content: no format would keep it. */
export function toContent(text: string): string {
  return text.trim() === "" ? "" : text;
}

function singleLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a title
  return text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ").slice(0, 300);
}
