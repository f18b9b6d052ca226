import { lstatSync } from "node:fs";
import { join } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { toFileError } from "../../files/file-error.ts";
import { type FindPlaceOptions, findPlace, type Place } from "../../files/find-place.ts";
import type { View } from "./workspace.ts";
import { toWorkspacePath } from "./workspace-path.ts";

export type PlaceOptions = Pick<FindPlaceOptions, "createFolders" | "end">;

/** Finds the place of a caller's path, hands it to `work`, and closes it. Throws `not_found`. */
export async function withPlace<Value>(
  view: View,
  path: string,
  given: PlaceOptions & { readonly work: (place: Place) => Promise<Value> },
): Promise<Value> {
  const { work, ...options } = given;
  const inside = toWorkspacePath(view, path);
  if (Object.keys(options).length === 0 && isMissing(view.workspace.root, inside)) throw notFound(inside);
  const place = await findPlace({ root: view.workspace.root, path: inside, area: "workspace", ...options });
  if (place === undefined) throw notFound(inside);
  try {
    return await work(place);
  } catch (error) {
    const isOfSystem = error instanceof Error && "syscall" in error;
    throw isOfSystem ? toFileError(error, inside === "" ? "The workspace" : inside) : error;
  } finally {
    await place.close();
  }
}

/**
 * Whether the root has no entry of that name: before each prompt an agent looks for files that are mostly not
 * there, and finding that out by descriptors costs a hundred times as much. Deeper paths are not looked at
 * in this way: a link on the way could lead out, and the answer would tell what is there.
 */
function isMissing(root: string, inside: string): boolean {
  if (inside === "" || inside.includes("/")) return false;
  try {
    return lstatSync(join(root, inside), { throwIfNoEntry: false }) === undefined;
  } catch {
    return false;
  }
}

export const notFound = (path: string): KitError =>
  new KitError({ code: "not_found", message: `${path} does not exist.` });
