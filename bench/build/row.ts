import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { ColdStart } from "./cold-start.ts";

export interface Size {
  readonly bytes: number;
  readonly files: number;
}

/** A row of the table: the figures of a build and start, or the reason that there are none. */
export interface Row {
  readonly label: string;
  readonly buildMs?: number;
  readonly size?: Size;
  readonly start?: ColdStart;
  readonly note?: string;
}

/** The files below a folder, without following links. */
export async function sizeOf(folder: string): Promise<Size> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  let bytes = 0;
  for (const file of files) bytes += (await stat(join(file.parentPath, file.name))).size;
  return { bytes, files: files.length };
}
