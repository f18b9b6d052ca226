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

export function matches(glob: string, name: string): boolean {
  let known = compiled.get(glob);
  if (known === undefined) {
    known = compileGlob(glob);
    compiled.set(glob, known);
  }
  return known.matches(name);
}
