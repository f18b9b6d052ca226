import type { SpecBlock } from "../../protocol/spec-block.ts";
import { exportSpecs } from "../../specs/export/export-specs.ts";
import { createSpecRegistry } from "../../specs/registry.ts";
import { asText, parseExportTarget } from "../choices.ts";
import { type Command, defineCommand, flag, option } from "../command.ts";
import { count } from "../render/places.ts";
import { noteLosses, printDocument } from "../render/print-document.ts";
import { usageError } from "../report-error.ts";
import { safeLine } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";
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
    withProject(context, async ({ project, loaded }) => {
      const { output } = context;
      const { format = "json", out, overwrite = false } = options;
      const { adapters = [], custom = [] } = loaded.config.specs ?? {};
      const all: readonly SpecBlock[] = [...project.specs.all()];
      // A framework's files hold that framework's specs; what is not among them is no loss of theirs.
      const blocks = all.filter(
        (spec) => format === "json" || format === "jsonl" || spec.framework === format,
      );
      const { files, losses } = exportSpecs(blocks, format, createSpecRegistry({ adapters, custom }));
      if (out !== undefined) {
        const written = await writeFiles(files, { folder: out, overwrite, context });
        if (context.json) output.json({ files: files.map(({ path }) => path), written, losses });
        else {
          const unchanged = files.length - written.length;
          const rest = unchanged === 0 ? "" : `, ${count(unchanged, "file")} up to date`;
          output.line(`${count(written.length, "file")} written to ${safeLine(out)}${rest}.`);
        }
      } else if (context.json) {
        output.json({ files, losses });
        return 0;
      } else if (files.length > 1) {
        throw usageError(
          `This format is ${count(files.length, "file")}, and there is no --out.`,
          "Name a folder: --out <dir>. --json prints all of them as one answer.",
        );
      } else {
        for (const { content } of files) printDocument(output, content);
      }
      noteLosses(output, losses);
      return 0;
    }),
});
