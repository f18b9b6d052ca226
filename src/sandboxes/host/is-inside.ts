import { isAbsolute, relative, sep } from "node:path";

/** Whether a path is a folder or lies below it; both absolute. */
export function isInside(folder: string, path: string): boolean {
  const from = relative(folder, path);
  return from === "" || (from !== ".." && !from.startsWith(`..${sep}`) && !isAbsolute(from));
}
