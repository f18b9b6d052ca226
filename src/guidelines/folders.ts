/** The folder of a project-relative path; "" for the root. */
export function folderOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash === -1 ? "" : path.slice(0, slash);
}

/** The folder that holds the innermost folder `name` (".cursor") on the way to a path. */
export function holderOf(path: string, name: string): string {
  const at = `/${path}`.lastIndexOf(`/${name}/`);
  return at <= 0 ? "" : path.slice(0, at - 1);
}

/** Whether a path lies in a folder or below it; everything lies below "". */
export function isWithin(path: string, folder: string): boolean {
  return folder === "" || path.startsWith(`${folder}/`);
}

/** A path relative to a folder that it lies below. */
export function relativeTo(path: string, folder: string): string {
  return folder === "" ? path : path.slice(folder.length + 1);
}
