import { describe, expect, test } from "vitest";
import { frameworks } from "../../protocol/enums.ts";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import { blocksOfProject, hasCorpus, loadCorpus } from "../../testing/corpus.ts";
import { createCustomAdapter } from "../adapters/custom/custom-adapter.ts";
import { exportSpecs } from "../export/export-specs.ts";
import { lineKinds, lineText, scanMarkdown } from "../markdown/scan-markdown.ts";
import { assembleBlocks } from "../model/assemble-blocks.ts";

describe.skipIf(!hasCorpus)("real repositories, written back", () => {
  const projects = loadCorpus().map((project) => ({ project, blocks: blocksOfProject(project) }));
  const all = projects.map(({ project, blocks }) => [project.name, blocks] as const);

  test.each(all)("%s: its files, written from its blocks, read back as the same blocks", (_name, blocks) => {
    for (const framework of frameworks) {
      const own = blocks.filter((block) => block.framework === framework);
      expect(exportSpecs(own, framework).losses.slice(0, 5)).toEqual([]);
    }
  });

  test.each(all)("%s: JSON and JSONL read back as the same blocks", (_name, blocks) => {
    for (const format of ["json", "jsonl"] as const) {
      const [file] = exportSpecs(blocks, format).files;
      const path = file?.path ?? "";
      const parsed = createCustomAdapter([{ include: path }]).parse({ path, text: file?.content ?? "" });
      expect(parsed.diagnostics).toEqual([]);
      expect(assembleBlocks([{ path, parsed }]).blocks.map(comparable)).toEqual(blocks.map(comparable));
    }
  });

  test("every line of an instruction or rule file is in a block, or is a heading, label, break or comment", () => {
    const lost: string[] = [];
    for (const { project, blocks } of projects) {
      for (const { path, text } of project.files) {
        if (!/(?:CLAUDE\.md|\.mdc|\.cursorrules|\.claude\/rules\/.*\.md)$/.test(path)) continue;
        if (/^\s*\{/.test(text)) continue;
        const own = blocks.filter((block) => block.path === path);
        lost.push(...uncovered(text, own).map((line) => `${project.name}/${path}: ${line}`));
      }
    }
    expect(lost).toEqual([]);
  });
});

/** A block without its place: a data file has lines and a path of its own. */
function comparable(block: SpecBlock): unknown {
  const { source: _source, origin, ...metadata } = block.metadata;
  return { ...block, metadata, path: origin ?? block.path };
}

function uncovered(text: string, blocks: readonly SpecBlock[]): string[] {
  const scan = scanMarkdown(text);
  const covered = new Set(scan.headings.flatMap(({ line, end_line }) => [line, end_line]));
  const topics = new Set(blocks.map(({ metadata }) => metadata.topic));
  for (const { metadata } of blocks) {
    for (let line = metadata.source?.start_line ?? 1; line <= (metadata.source?.end_line ?? 0); line += 1)
      covered.add(line);
  }
  const lines = Array.from({ length: scan.lineCount }, (_, index) => index + 1);
  return lines
    .filter((line) => !covered.has(line))
    .filter(
      (line) => scan.kinds[line - 1] !== lineKinds.comment && scan.kinds[line - 1] !== lineKinds.frontMatter,
    )
    .map((line) => lineText(scan, line).trim())
    .filter((line) => line !== "" && !/^(?:-{3,}|\*{3,}|_{3,})$/.test(line))
    .filter(
      (line) =>
        !topics.has(
          line
            .replace(/\*\*|__/g, "")
            .trim()
            .replace(/[:：]$/, "")
            .trim(),
        ),
    );
}
