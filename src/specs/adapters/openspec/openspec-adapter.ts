import type { SpecBlock } from "../../../protocol/spec-block.ts";
import type { ParsedSpecs, SpecAdapter, SpecDraft, SpecSource, WrittenSpecs } from "../../adapter.ts";
import { blocksByPath, toWritableSegment, withFrontMatter } from "../../export/blocks-by-path.ts";
import { unclosedDiagnostics } from "../../markdown/diagnostics.ts";
import { toListItem } from "../../markdown/list-item.ts";
import { type MarkdownScan, scanMarkdown } from "../../markdown/scan-markdown.ts";
import { headingLine, type WritableSegment, writeSegments } from "../../markdown/write-segments.ts";
import { blockTitle } from "../../model/block-title.ts";
import { slugOf } from "../../model/slug.ts";
import { detailText, taskItemsIn, taskMarker, taskStatusOf } from "../../model/task-list.ts";
import { type OpenspecDocument, openspecDocumentOf, toDraft } from "./openspec-document.ts";
import { requirementBlocks } from "./requirement-blocks.ts";
import { proposalBlocks, sectionBlocks } from "./section-blocks.ts";

/**
 * OpenSpec: `openspec/specs/<capability>/{spec,design}.md`, `openspec/project.md`, and the specs,
 * proposal, design and tasks of `openspec/changes/<change>`, below any folder. Its blocks are of the
 * framework `custom` with `metadata.tool: "openspec"`.
 *
 * - Each `### Requirement:` is a requirement with its scenarios as criteria; other text of a spec is
 *   a block per section.
 * - In a change, `metadata.delta` says whether a requirement is added, modified, removed or renamed;
 *   all but added ones are linked to the requirement they change, and removed ones are deprecated.
 * - An archived change is obsolete: what it said has been merged into the specs.
 */
export const openspecAdapter: SpecAdapter = {
  name: "openspec",
  framework: "custom",
  matches: (path) => openspecDocumentOf(path) !== undefined,
  parse,
  write: writeOpenspec,
};

function parse({ path, text }: SpecSource): ParsedSpecs {
  const scan = scanMarkdown(text);
  return { drafts: draftsOf(scan, path), diagnostics: unclosedDiagnostics(scan, path) };
}

function draftsOf(scan: MarkdownScan, path: string): readonly SpecDraft[] {
  const document = openspecDocumentOf(path);
  switch (document?.kind) {
    case "spec":
    case "delta":
      return requirementBlocks(scan, document);
    case "proposal":
      return proposalBlocks(scan, document);
    case "design":
    case "project":
      return sectionBlocks(scan, document);
    case "tasks":
      return taskBlocks(scan, document);
    case undefined:
      return [];
  }
}

const taskNumber = /^(\d+(?:\.\d+)*)[.)]?(?=\s)/;

/** Each checkbox of a change's tasks.md. */
function taskBlocks(scan: MarkdownScan, document: OpenspecDocument): SpecDraft[] {
  let heading = 0;
  let section = "";
  return taskItemsIn(scan, scan.bodyLine, scan.lineCount).map((item) => {
    while ((scan.headings[heading]?.line ?? item.line) < item.line) {
      section = scan.headings[heading]?.title || section;
      heading += 1;
    }
    const number = taskNumber.exec(item.text)?.[1];
    const details = detailText(scan, item);
    const content = details === "" ? item.text : `${item.text}\n${details}`.trim();
    const title = blockTitle(item.text) || "Task";
    return toDraft(scan, document, {
      id: `${document.idStem}-tasks-${number ?? (slugOf(item.text) || "task")}`,
      spec_type: "task",
      title,
      content: content === "" ? title : content,
      metadata: {
        status: taskStatusOf(item.state),
        ...(number !== undefined && { task: number }),
        ...(section !== "" && { section }),
      },
      from: item.line,
      to: item.details.at(-1)?.to ?? item.line,
    });
  });
}

/** Renders each file of the blocks as OpenSpec lays it out. */
function writeOpenspec(blocks: readonly SpecBlock[]): WrittenSpecs {
  const files = blocksByPath(blocks).map(({ path, blocks: own }) => ({
    path,
    content: withFrontMatter("", contentOf(path, own)),
  }));
  return { files, losses: [] };
}

function contentOf(path: string, blocks: readonly SpecBlock[]): string {
  switch (openspecDocumentOf(path)?.kind) {
    case "proposal":
      return `${blocks.map(({ content }) => content).join("\n\n")}\n`;
    case "tasks":
      return `${taskParts(blocks).join("\n")}\n`;
    default:
      return writeSegments(specSegments(blocks));
  }
}

function specSegments(blocks: readonly SpecBlock[]): WritableSegment[] {
  const segments: WritableSegment[] = [];
  let listed: string[] = [];
  for (const [index, block] of blocks.entries()) {
    const { metadata, title } = block;
    if (metadata.listed === true) {
      listed.push(block.content);
      const next = blocks[index + 1]?.metadata;
      if (next?.listed === true && next.delta === metadata.delta) continue;
      const heading = `${String(metadata.delta).toUpperCase()} Requirements`;
      segments.push({ ...toWritableSegment(block), title: heading, level: 2, body: listed.join("\n") });
      listed = [];
    } else {
      const isRequirement = metadata.requirement !== undefined;
      const segment = toWritableSegment(block);
      segments.push(isRequirement ? { ...segment, title: `Requirement: ${title}` } : segment);
    }
  }
  return segments;
}

function taskParts(blocks: readonly SpecBlock[]): string[] {
  const parts: string[] = [];
  let section: unknown;
  for (const { content, metadata } of blocks) {
    if (typeof metadata.section === "string" && metadata.section !== section) {
      parts.push(...(parts.length === 0 ? [] : [""]), headingLine(metadata.section, 2), "");
    }
    section = metadata.section;
    parts.push(toListItem(taskMarker(metadata.status), content), ...(content.includes("\n") ? [""] : []));
  }
  return parts;
}
