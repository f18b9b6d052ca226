import type { SpecBlock } from "../../../protocol/spec-block.ts";

/** Renders tasks as Kiro's checkbox list; a task lies below the one whose number its own begins with. */
export function writeTasks(blocks: readonly SpecBlock[]): string {
  const parts = ["# Implementation Plan"];
  const open: string[] = [];
  for (const block of blocks) {
    const number = typeof block.metadata.number === "string" ? block.metadata.number : undefined;
    while (open.length > 0 && !number?.startsWith(`${open.at(-1)}.`)) open.pop();
    const item = taskItem(block, number);
    parts.push(indented(item, open.length * 2));
    if (number !== undefined) open.push(number);
  }
  return `${parts.join("\n\n")}\n`;
}

function taskItem({ title, content, metadata }: SpecBlock, number: string | undefined): string {
  const box = `- [${stateOf(metadata.status, metadata.state)}]${metadata.optional === true ? "*" : ""}`;
  const name = number === undefined || number.includes(".") ? number : `${number}.`;
  // A title that was cut is written as long as the content gives it.
  const [first = "", ...rest] = content.split("\n");
  const isCut = title.endsWith("…") && first.startsWith(title.slice(0, -1));
  const details = isCut ? rest.join("\n") : content;
  const words = [box, name, metadata.parallel === true ? "(P)" : undefined, isCut ? first : title];
  const line = words.filter((word) => word !== undefined).join(" ");
  return details === title || details === "" ? line : `${line}\n${indented(details, detailIndent(details))}`;
}

function stateOf(status: unknown, state: unknown): string {
  if (typeof state === "string" && /^[^[\]\s]$/u.test(state)) return state;
  return status === "done" ? "x" : status === "in_progress" ? "-" : " ";
}

/** Two columns, or four where that keeps a line from becoming a heading, a rule or an HTML block. */
function detailIndent(details: string): number {
  return /^ {0,3}(?:#{1,6}(?:\s|$)|[=-]+\s*$|<)/m.test(details) ? 4 : 2;
}

function indented(text: string, columns: number): string {
  const margin = " ".repeat(columns);
  return text
    .split("\n")
    .map((line) => (line === "" ? line : margin + line))
    .join("\n");
}
