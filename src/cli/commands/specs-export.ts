import { readFileInside } from "../../project/features/write-file.ts";
import type { Project } from "../../project/project.ts";
import { createSourceCatalog } from "../../project/scan/source-catalog.ts";
import { decodeText } from "../../project/scan/source-reader.ts";
import { frameworks as knownFrameworks } from "../../protocol/enums.ts";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import type { WrittenSpecs } from "../../specs/adapter.ts";
import { exportSpecs, type SpecExportFormat, textOutsideBlocks } from "../../specs/export/export-specs.ts";
import { createSpecRegistry } from "../../specs/registry.ts";
import { asText, parseExportTarget } from "../choices.ts";
import { type Command, type CommandContext, defineCommand, flag, option } from "../command.ts";
import { count, noteLosses, printDocument } from "../print/table.ts";
import { usageError } from "../report-error.ts";
import { safeLine, safeLines } from "../text/safe-text.ts";
import { type OpenedProject, withProject } from "../with-project.ts";
import { writeFiles } from "../write-files.ts";

export const specsExport: Command = defineCommand({
  options: {
    format: option(
      "-f, --format <name>",
      "json (default), jsonl, or the files of kiro, cursor, claude, speckit, tessl or custom",
      parseExportTarget,
    ),
    out: option("-o, --out <dir>", "Write into this folder instead of printing", asText),
    overwrite: flag("--overwrite", "Replace files there that have other content"),
  },
  examples: [
    "kit specs export > specs.json",
    "kit specs export --format jsonl | wc -l",
    "kit specs export --format kiro --out backup",
  ],
  details:
    "JSON and JSON Lines contain every spec; a framework's files contain the specs of that framework. Lists what a format cannot express, and text of spec files that is in no spec.",
  run: ({ options }, context) =>
    withProject(context, async (opened) => {
      const { output, json } = context;
      const { format = "json", out, overwrite = false } = options;
      if (out === undefined && !json && (format === "json" || format === "jsonl")) {
        printPieces(opened.project, format, context);
        noteLosses(output, await lossesOfText(opened, format, []));
        return 0;
      }
      const rendered = await render(opened, format);
      if (out !== undefined) await writeAll(rendered, { folder: out, overwrite, context });
      else if (json) output.json(rendered);
      else printOne(rendered, context);
      if (!json) noteLosses(output, rendered.losses);
    }),
});

/** A framework's files can hold only that framework's specs; leaving out others is not reported as a loss. */
async function render(opened: OpenedProject, format: SpecExportFormat): Promise<WrittenSpecs> {
  const { project, loaded } = opened;
  const { adapters = [], custom = [] } = loaded.config.specs ?? {};
  const holdsAll = format === "json" || format === "jsonl";
  const blocks = [...project.specs.all()].filter((spec) => holdsAll || spec.framework === format);
  const written = exportSpecs(blocks, format, createSpecRegistry({ adapters, custom }));
  return { ...written, losses: [...written.losses, ...(await lossesOfText(opened, format, written.files))] };
}

/** The text of spec files that is in no spec, a sentence for each file. */
async function lossesOfText(
  { project, loaded }: OpenedProject,
  format: SpecExportFormat,
  files: WrittenSpecs["files"],
): Promise<string[]> {
  const blocks = Map.groupBy(project.specs.all(), ({ path }) => path);
  const written = new Map(files.map(({ path, content }) => [path, content]));
  const catalog = createSourceCatalog(loaded.config);
  const losses: string[] = [];
  for (const path of project.files()) {
    const framework = catalog.specAdapterFor(path)?.framework;
    if (framework === undefined || (frameworks.has(format) && framework !== format)) continue;
    const blocksOfFile = blocks.get(path) ?? [];
    // Tessl's extension: browser tests and documentation have it, too.
    if (blocksOfFile.length === 0 && framework === "fw_e") continue;
    const bytes = await readFileInside(project.root, { path }).catch(() => undefined);
    if (bytes === undefined) continue;
    const source = { path, text: decodeText(bytes, path).text };
    const loss = textOutsideBlocks({ source, blocks: blocksOfFile, written: written.get(path) ?? "" });
    if (loss !== undefined) losses.push(loss);
  }
  return losses;
}

const frameworks: ReadonlySet<string> = new Set(knownFrameworks);

function printPieces(project: Project, format: "json" | "jsonl", { output }: CommandContext): void {
  const toPieces = format === "json" ? toJsonPieces : toJsonLines;
  for (const piece of toPieces(project.specs.all())) {
    output.write(output.isTerminal ? safeLines(piece) : piece);
  }
}

function printOne({ files }: WrittenSpecs, { output }: CommandContext): void {
  const [first, ...otherFiles] = files;
  if (otherFiles.length > 0) {
    throw usageError(
      `This format has ${count(files.length, "file")}, and --out is missing.`,
      "Name a folder: --out <dir>. --json prints all of them as one answer.",
    );
  }
  if (first === undefined) output.note("The project has no spec of this framework.");
  else printDocument(output, first.content);
}

async function writeAll(
  { files, losses }: WrittenSpecs,
  target: { readonly folder: string; readonly overwrite: boolean; readonly context: CommandContext },
): Promise<void> {
  const { output, json } = target.context;
  const written = await writeFiles(files, target);
  if (json) {
    output.json({ files: files.map(({ path }) => path), written, losses });
    return;
  }
  const unchanged = files.length - written.length;
  const rest = unchanged === 0 ? "" : `, ${count(unchanged, "file")} up to date`;
  output.line(`${count(written.length, "file")} written to ${safeLine(target.folder)}${rest}.`);
}

/**
 * `specs.json` of `exportSpecs`, in pieces: the JSON of a whole repository can be larger than its sources, and need
 * not be in memory at once.
 */
export function* toJsonPieces(specs: Iterable<SpecBlock>): Iterable<string> {
  let isFirst = true;
  for (const spec of specs) {
    yield `${isFirst ? '{\n  "specs": [' : ","}\n    ${JSON.stringify(spec, null, 2).replaceAll("\n", "\n    ")}`;
    isFirst = false;
  }
  yield isFirst ? '{\n  "specs": []\n}\n' : "\n  ]\n}\n";
}

/** `specs.jsonl` of `exportSpecs`, line by line. */
export function* toJsonLines(specs: Iterable<SpecBlock>): Iterable<string> {
  for (const spec of specs) yield `${JSON.stringify(spec)}\n`;
}
