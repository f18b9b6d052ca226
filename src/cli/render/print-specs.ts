import type { SpecBlock } from "../../protocol/spec-block.ts";
import type { SpecPage } from "../../protocol/spec-query.ts";
import { frameworkLabel } from "../../specs/frameworks.ts";
import type { Output, Style } from "../output.ts";
import { type Column, printTable } from "../table.ts";
import { count, specPlace } from "./places.ts";

const columns: readonly Column<SpecBlock>[] = [
  { header: "ID", value: (spec) => spec.id, style: () => "cyan", isId: true },
  { header: "FRAMEWORK", value: (spec) => frameworkLabel(spec.framework) },
  { header: "TYPE", value: (spec) => spec.spec_type },
  { header: "TITLE", value: titleOf, style: (spec) => styleOf(spec), cut: "end" },
  { header: "WHERE", value: specPlace, style: () => "dim", cut: "middle" },
];

/** A page of specs as a table, and what of the whole match it is. */
export function printSpecPage(output: Output, page: SpecPage): void {
  printTable(output, page.specs, columns);
  if (page.next_cursor !== undefined) {
    const shown = `${page.specs.length.toLocaleString("en")} of ${count(page.total_count, "spec")}`;
    output.note(output.noteStyle("dim", `${shown}; --limit shows more, --all all of them.`));
  } else if (page.total_count > 0) {
    output.note(output.noteStyle("dim", `${count(page.total_count, "spec")}.`));
  }
}

/** What is out of the ordinary stands with the title: a done task, a spec that is no longer active. */
function titleOf(spec: SpecBlock): string {
  const remarks = [
    ...(spec.spec_type === "task" && spec.metadata.status ? [spec.metadata.status.replace("_", " ")] : []),
    ...(spec.lifecycle === "active" ? [] : [spec.lifecycle]),
    ...(spec.priority === "medium" ? [] : [`${spec.priority} priority`]),
  ];
  return remarks.length === 0 ? spec.title : `${spec.title} (${remarks.join(", ")})`;
}

function styleOf(spec: SpecBlock): Style | undefined {
  return spec.lifecycle === "active" && spec.metadata.status !== "done" ? undefined : "dim";
}
