import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import { frameworkLabel } from "../../specs/frameworks.ts";
import { type Command, defineCommand } from "../command.ts";
import { findSpec } from "../find-record.ts";
import type { Output } from "../output.ts";
import { printFields } from "../render/print-fields.ts";
import { safeLine, safeLines } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";

export const specsShow: Command = defineCommand({
  arguments: [{ usage: "<id>", description: "The id of a spec, as 'kit specs list' prints it" }],
  options: {},
  examples: ["kit specs show fw_a-checkout-requirements-req1"],
  run: ({ args: [id = ""] }, context) =>
    withProject(context, async ({ project }) => {
      const spec = findSpec(project, id);
      if (context.json) context.output.json(spec);
      else {
        const diagnostics = project.specs.diagnostics().filter((diagnostic) => diagnostic.id === spec.id);
        printSpec(context.output, spec, diagnostics);
      }
      return 0;
    }),
});

function printSpec(output: Output, spec: SpecBlock, diagnostics: readonly Diagnostic[]): void {
  const { metadata } = spec;
  const span = metadata.source;
  output.line(output.style("bold", safeLine(spec.title)));
  printFields(output, [
    ["id", spec.id],
    ["where", span ? `${spec.path}:${span.start_line}-${span.end_line}` : spec.path],
    ["also", metadata.aliases],
    ["kind", `${frameworkLabel(spec.framework)} ${spec.spec_type}`],
    ["status", metadata.status?.replace("_", " ")],
    ["lifecycle", spec.lifecycle],
    ["priority", spec.priority],
    ["tags", spec.tags.join(", ")],
    ["created", spec.created_at],
    ["updated", spec.updated_at],
    ["author", typeof metadata.author === "string" ? metadata.author : undefined],
    ["related", metadata.related_specs],
    ["code", metadata.code_refs],
    ["tests", metadata.test_refs],
    [
      "problems",
      diagnostics.map(
        ({ severity, message, line }) => `${severity}: ${message}${line ? ` (line ${line})` : ""}`,
      ),
    ],
  ]);
  output.line();
  output.line(safeLines(spec.content).trimEnd());
}
