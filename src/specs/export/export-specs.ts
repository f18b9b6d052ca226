import { canonical } from "../../base/json-text.ts";
import type { Framework, SpecBlock, SpecMetadata } from "../../protocol/spec-block.ts";
import type { SpecAdapter, SpecSource, WrittenSpecs } from "../adapter.ts";
import { createCustomAdapter } from "../adapters/custom/custom-adapter.ts";
import { frameworkLabel } from "../frameworks.ts";
import { lineKinds, lineText, type MarkdownScan, scanMarkdown } from "../markdown/scan-markdown.ts";
import { assembleBlocks, type ParsedFile } from "../model/assemble-blocks.ts";
import { createSpecRegistry, type SpecRegistry } from "../registry.ts";

/** JSON and JSONL hold every block; a framework's own files hold those of the framework. */
export type SpecExportFormat = "json" | "jsonl" | Framework;

/**
 * Renders blocks as files: `specs.json` (`{"specs": [...]}`), `specs.jsonl`, or the files of a framework at the paths of the
 * blocks. Reading them returns the same blocks, except for lines, dates and authors.
 *
 * Reads the rendered files back to find what a format cannot hold, and lists it as losses, one sentence per block. Nothing is
 * written to disk.
 *
 * @example
 * ```ts
 * import { openProject } from "kit";
 * import { exportSpecs } from "kit/specs";
 *
 * const project = await openProject({ root: "." });
 * const { files, losses } = exportSpecs([...project.specs.all()], "jsonl");
 * console.log(files.length, losses);
 * await project.close();
 * ```
 */
export function exportSpecs(
  blocks: readonly SpecBlock[],
  format: SpecExportFormat,
  registry: SpecRegistry = createSpecRegistry(),
): WrittenSpecs {
  switch (format) {
    case "json":
      return oneFile("specs.json", `${JSON.stringify({ specs: blocks }, null, 2)}\n`);
    case "jsonl":
      return oneFile("specs.jsonl", blocks.map((block) => `${JSON.stringify(block)}\n`).join(""));
    default:
      return inOwnFormat(blocks, format, registry);
  }
}

function oneFile(path: string, content: string): WrittenSpecs {
  return { files: [{ path, content }], losses: [] };
}

/** Reads what no other adapter does; the config that named those files is not known here. */
const anyFile = createCustomAdapter([{ include: "**" }]);

function inOwnFormat(
  blocks: readonly SpecBlock[],
  framework: Framework,
  registry: SpecRegistry,
): WrittenSpecs {
  const { shares, losses } = shareOut(blocks, framework, registry);
  const written = [...shares].map(([adapter, share]) => ({ adapter, ...adapter.write?.(share) }));
  const parsed = written.flatMap(({ adapter, files = [] }): ParsedFile[] =>
    files.map(({ path, content }) => ({ path, parsed: adapter.parse({ path, text: content }) })),
  );
  const files = written.flatMap((each) => each.files ?? []);
  return {
    files: files.sort((one, other) => (one.path < other.path ? -1 : 1)),
    losses: [
      ...losses,
      ...written.flatMap((each) => each.losses ?? []),
      ...lossesOnReading([...shares.values()].flat(), parsed),
    ],
  };
}

/** The blocks that each adapter of a framework writes: those in files that it would read. */
function shareOut(
  blocks: readonly SpecBlock[],
  framework: Framework,
  registry: SpecRegistry,
): { shares: Map<SpecAdapter, SpecBlock[]>; losses: string[] } {
  const shares = new Map<SpecAdapter, SpecBlock[]>();
  const losses: string[] = [];
  for (const block of blocks) {
    const reader = registry.adapterFor(block.path) ?? (framework === "custom" ? anyFile : undefined);
    if (block.framework !== framework) {
      losses.push(`${block.id} is left out: it is a block of ${frameworkLabel(block.framework)}.`);
    } else if (reader?.framework !== framework) {
      losses.push(`${block.id} is left out: ${block.path} is not a file of ${frameworkLabel(framework)}.`);
    } else if (reader.write === undefined) {
      losses.push(`${block.id} is left out: the adapter "${reader.name}" writes no files.`);
    } else {
      const share = shares.get(reader);
      if (share === undefined) shares.set(reader, [block]);
      else share.push(block);
    }
  }
  return { shares, losses };
}

/** The parts of blocks that the files of an export lose, a sentence for each block. */
function lossesOnReading(blocks: readonly SpecBlock[], files: readonly ParsedFile[]): string[] {
  const known = new Set(
    blocks.flatMap(({ metadata }) => [...listOf(metadata.code_refs), ...listOf(metadata.test_refs)]),
  );
  const found = new Map<string, SpecBlock[]>();
  for (const block of assembleBlocks(files, (path) => known.has(path)).blocks) {
    const same = found.get(block.id);
    if (same === undefined) found.set(block.id, [block]);
    else same.push(block);
  }
  const losses: string[] = [];
  for (const block of blocks) {
    // An id that is declared twice is an error, and both blocks keep it.
    const candidates = found.get(block.id) ?? [];
    const sameFile = candidates.find(({ path }) => path === block.path);
    if (sameFile === undefined) losses.push(`${block.id} is not read back from ${block.path} under its id.`);
    else {
      candidates.splice(candidates.indexOf(sameFile), 1);
      const fields = lostFields(block, sameFile);
      if (fields.length > 0) losses.push(`${block.id} is read back with another ${fields.join(", ")}.`);
    }
  }
  const surplus = [...found.values()].flat();
  losses.push(
    ...surplus.map(
      ({ id, path }) => `${path} is read back with the id ${id}, which the project does not have.`,
    ),
  );
  return losses;
}

const plainFields = ["spec_type", "title", "content", "summary", "lifecycle", "priority"] as const;
const references = ["code_refs", "test_refs", "related_specs"] as const;

function lostFields(block: SpecBlock, own: SpecBlock): string[] {
  const lost: string[] = plainFields.filter((field) => block[field] !== own[field]);
  if (canonical(block.tags) !== canonical(own.tags)) lost.push("tags");
  if (canonical(ownMetadata(block.metadata)) !== canonical(ownMetadata(own.metadata))) lost.push("metadata");
  for (const field of references) {
    const present = new Set(listOf(own.metadata[field]));
    if (!listOf(block.metadata[field]).every((item) => present.has(item))) lost.push(field);
  }
  return lost;
}

/** Metadata without what follows from the text's place in its file and in the project, and from its history. */
function ownMetadata(metadata: SpecMetadata): Readonly<Record<string, unknown>> {
  const {
    source: _source,
    related_specs: _related,
    code_refs: _code,
    test_refs: _tests,
    ...exported
  } = metadata;
  const { author: _author, ...own } = exported;
  const criteria = metadata.ears_patterns?.map(({ line: _line, ...criterion }) => criterion);
  return { ...own, ears_patterns: criteria };
}

function listOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

interface ExportedSource {
  readonly source: SpecSource;
  /** The blocks that were read from it. */
  readonly blocks: readonly Pick<SpecBlock, "metadata">[];
  /** The text that an export writes in its place; absent where it writes blocks alone, as JSON does. */
  readonly written?: string;
}

/** More parts of a file than these are only counted. */
const mostParts = 3;

/**
 * Reports the text of a Markdown file that an export leaves out because it is in no block, such as an introduction or a glossary:
 * one sentence with its lines; `undefined` if there is no such text. Lines that the export writes anyway do not count.
 */
export function textOutsideBlocks({ source, blocks, written = "" }: ExportedSource): string | undefined {
  if (!/\.(?:md|mdc)$/.test(source.path)) return undefined;
  const scan = scanMarkdown(source.text);
  const writtenLines = new Set(written.split(/\r\n|\n|\r/).map((line) => line.trim()));
  const covered = new Uint8Array(scan.lineCount + 1);
  for (const { metadata } of blocks) {
    const span = metadata.source;
    if (span !== undefined) covered.fill(1, span.start_line, span.end_line + 1);
  }
  const parts: { from: number; to: number; heading: string }[] = [];
  let lost = 0;
  for (let line = scan.bodyLine; line <= scan.lineCount; line += 1) {
    if (covered[line] === 1 || isMarkup(scan, line)) continue;
    const text = lineText(scan, line).trim();
    if (text === "" || writtenLines.has(text)) continue;
    lost += 1;
    const last = parts.at(-1);
    const heading = headingAbove(scan, line);
    if (last !== undefined && last.heading === heading && !isBroken(covered, last.to, line)) last.to = line;
    else parts.push({ from: line, to: line, heading });
  }
  if (lost === 0) return undefined;
  if (blocks.length === 0) return `${source.path}: no spec was read from it, so nothing of it is exported.`;
  const listed = parts.slice(0, mostParts).map(({ from, to, heading }) => {
    const lines = from === to ? `${from}` : `${from}–${to}`;
    return heading === "" ? lines : `${lines} (${heading})`;
  });
  const more = parts.length > mostParts ? ` and ${parts.length - mostParts} more` : "";
  const verb = lost === 1 ? "line outside of specs is" : "lines outside of specs are";
  return `${source.path}: ${lost} ${verb} left out: ${listed.join(", ")}${more}.`;
}

/** Headings and rules order a text; comments are no part of it. */
function isMarkup(scan: MarkdownScan, line: number): boolean {
  if (scan.kinds[line - 1] === lineKinds.comment) return true;
  if (scan.kinds[line - 1] !== lineKinds.prose) return false;
  return /^\s*(?:#{1,6}(?:\s|$)|(?:-{3,}|\*{3,}|_{3,}|={3,})\s*$)/.test(lineText(scan, line));
}

function isBroken(covered: Uint8Array, from: number, to: number): boolean {
  for (let line = from; line < to; line += 1) if (covered[line] === 1) return true;
  return false;
}

function headingAbove(scan: MarkdownScan, line: number): string {
  let low = 0;
  let high = scan.headings.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((scan.headings[middle]?.line ?? 0) <= line) low = middle + 1;
    else high = middle;
  }
  return (scan.headings[low - 1]?.title ?? "").slice(0, 60);
}
