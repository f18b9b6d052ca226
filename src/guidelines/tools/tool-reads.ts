import { compileGlob, type Glob } from "../../base/glob/glob.ts";
import { type ToolId, type ToolInfo, toolTable } from "./tool-table.ts";

const infos = new Map(toolTable.map((info) => [info.id, info]));
const compiled = new Map<string, Glob>();

/** What the table says of a tool. */
export function toolInfo(id: ToolId): ToolInfo {
  const info = infos.get(id);
  if (info === undefined) throw new Error(`The table of tools does not know ${id}.`);
  return info;
}

/** The place of a file's name in the list of what a tool reads; -1 for a file that it does not read. */
export function readIndex(id: ToolId, name: string): number {
  return toolInfo(id).reads.findIndex(({ files, at }) => matches(at === "any" ? `**/${files}` : files, name));
}

/**
 * Whether a tool reads a file of the project by itself, all that it says, where `others` are there too: then
 * nothing has to be written for it.
 */
export function readsItself(id: ToolId, name: string, others: readonly string[]): boolean {
  const { reads, readsOne = false } = toolInfo(id);
  const index = readIndex(id, name);
  const read = reads[index];
  if (read === undefined) return false;
  if (readsOne)
    return !reads.slice(0, index).some(({ files }) => others.some((other) => matches(files, other)));
  const { sufficesUnless } = read;
  return (
    sufficesUnless !== undefined &&
    !sufficesUnless.some((file) => others.some((other) => matches(`**/${file}`, other)))
  );
}

export function matches(glob: string, name: string): boolean {
  let known = compiled.get(glob);
  if (known === undefined) {
    known = compileGlob(glob);
    compiled.set(glob, known);
  }
  return known.matches(name);
}
