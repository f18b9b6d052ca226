import type { SpecBlock, SpecMetadata } from "../../../protocol/spec-block.ts";
import type { ParsedSpecs, SpecAdapter, SpecDraft, SpecSource, WrittenSpecs } from "../../adapter.ts";
import { frontMatterDiagnostics, frontMatterText, readFrontMatter } from "../../markdown/front-matter.ts";
import { scanMarkdown, unclosedDiagnostics } from "../../markdown/scan-markdown.ts";
import { type Segment, segmentsOf, writeSegments } from "../../markdown/segments.ts";
import { renderFiles, toWritableSegment, withFrontMatter } from "../../model/assemble-blocks.ts";
import { blockTitle, slugOf } from "../../model/block-title.ts";
import { mentionsIn } from "../../model/mentions.ts";

const sources = /(?:^|\/)(?:CLAUDE\.md|\.claude\/rules\/(?:.*\/)?[^/]+\.md)$/;

/**
 // * Claude Code: `CLAUDE.md` anywhere, `.claude/CLAUDE.md`, `.claude/rules/**\/*.md`. * * One constraint per section. A section
 // is a first- or second-level heading with the text up to the * next such heading; deeper headings stay in its content, unless a
 // file has no others. Text before the first heading is a block * named after the file, and a heading without text has its title
 // as content, so no rule is lost. `metadata.level` is the level of the heading (0 without a heading), `metadata.parents` the
 // headings above it, and `metadata.frontmatter`, on the first block, the unparsed front matter. */
export const claudeAdapter: SpecAdapter = {
  name: "claude",
  framework: "fw_c",
  matches: (path) => sources.test(path),
  parse,
  write: writeClaude,
};

function parse(source: SpecSource): ParsedSpecs {
  const scan = scanMarkdown(source.text);
  const frontMatter = readFrontMatter(scan);
  const diagnostics = [
    ...frontMatterDiagnostics(source.path, frontMatter.problems),
    ...unclosedDiagnostics(scan, source.path),
  ];
  const drafts: SpecDraft[] = [];
  // Without headings of that level, the highest ones are the sections.
  const highest = scan.headings.reduce((level, heading) => Math.min(level, heading.level), 6);
  for (const segment of segmentsOf(scan, Math.max(2, highest))) {
    if (!segment.hasContent && segment.hasChildren) continue;
    const title =
      segment.heading === undefined ? fileTitle(source.path) : segment.heading.title || "Untitled";
    const slug = slugOf(title) || "section";
    drafts.push({
      id: { kind: "base", value: `fw_c-${slug}` },
      framework: "fw_c",
      spec_type: "constraint",
      title,
      content: segment.hasContent ? segment.body : title,
      tags: ["fw_c", slug],
      lifecycle: "active",
      priority: "medium",
      metadata: metadataOf(segment, drafts.length === 0 ? frontMatterText(frontMatter.raw) : ""),
      span: { start_line: segment.startLine, end_line: segment.endLine },
      links: [],
      mentions: mentionsIn(scan, segment.startLine, segment.endLine),
    });
  }
  return { drafts, diagnostics };
}

function metadataOf(segment: Segment, frontmatter: string): SpecMetadata {
  return {
    ...(frontmatter !== "" && { frontmatter }),
    level: segment.heading?.level ?? 0,
    ...(segment.parents.length > 0 && { parents: segment.parents }),
  };
}

/** The name of a file without its extension: "CLAUDE", "testing". */
function fileTitle(path: string): string {
  return blockTitle(path.slice(path.lastIndexOf("/") + 1).replace(/\.md$/, "")) || "Untitled";
}

/** Renders each file of the blocks: its front matter, then a section per block. */
function writeClaude(blocks: readonly SpecBlock[]): WrittenSpecs {
  return renderFiles(blocks, (_path, own) =>
    withFrontMatter(
      own[0]?.metadata.frontmatter,
      writeSegments(own.map(toWritableSegment), { titleIsBody: true }),
    ),
  );
}
