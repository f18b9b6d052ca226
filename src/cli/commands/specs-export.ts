import type { Project } from "../../project/project.ts";
import type { WrittenSpecs } from "../../specs/adapter.ts";
import { exportSpecs, type SpecExportFormat } from "../../specs/export/export-specs.ts";
import { createSpecRegistry } from "../../specs/registry.ts";
import { parseExportTarget } from "../choices.ts";
import { type Command, type CommandContext, defineCommand, flag, option } from "../command.ts";
import { toJsonLines, toJsonPieces } from "../format/spec-json.ts";
import { count } from "../render/places.ts";
import { noteLosses, printDocument } from "../render/print-document.ts";
import { usageError } from "../report-error.ts";
import { safeLine, safeLines } from "../text/safe-text.ts";
import { asText } from "../values.ts";
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
    overwrite: flag("--overwrite", "Replace files there that say something else"),
  },
  examples: [
    "kit specs export > specs.json",
    "kit specs export --format jsonl | wc -l",
    "kit specs export --format kiro --out backup",
  ],
  details:
    "JSON and JSON Lines hold every spec; a framework's files hold those of the framework. What they cannot hold is listed.",
  run: ({ options }, context) =>
    withProject(context, async (opened) => {
      const { output, json } = context;
      const { format = "json", out, overwrite = false } = options;
      if (out === undefined && !json && (format === "json" || format === "jsonl")) {
        printPieces(opened.project, format, context);
        return 0;
      }
      const rendered = render(opened, format);
      if (out !== undefined) await writeAll(rendered, { folder: out, overwrite, context });
      else if (json) output.json(rendered);
      else printOne(rendered, context);
      if (!json) noteLosses(output, rendered.losses);
      return 0;
    }),
});

/** A framework's files hold that framework's specs; what is not among them is no loss of theirs. */
function render({ project, loaded }: OpenedProject, format: SpecExportFormat): WrittenSpecs {
  const { adapters = [], custom = [] } = loaded.config.specs ?? {};
  const holdsAll = format === "json" || format === "jsonl";
  const blocks = [...project.specs.all()].filter((spec) => holdsAll || spec.framework === format);
  return exportSpecs(blocks, format, createSpecRegistry({ adapters, custom }));
}

function printPieces(project: Project, format: "json" | "jsonl", { output }: CommandContext): void {
  const toPieces = format === "json" ? toJsonPieces : toJsonLines;
  for (const piece of toPieces(project.specs.all())) {
    output.write(output.isTerminal ? safeLines(piece) : piece);
  }
}

function printOne({ files }: WrittenSpecs, { output }: CommandContext): void {
  const [first, ...others] = files;
  if (others.length > 0) {
    throw usageError(
      `This format is ${count(files.length, "file")}, and there is no --out.`,
      "Name a folder: --out <dir>. --json prints all of them as one answer.",
    );
  }
  if (first === undefined) output.note("No spec of this framework here.");
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
