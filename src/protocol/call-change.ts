/** A change of one file, as whole texts. */
export interface FileText {
  /** The path that the call names. */
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

/**
 * Returns the file that a call of the built-in tool `write` or `edit` changes; `undefined` for other calls.
 *
 * @example
 * ```ts
 * import { findChangedFile } from "kit/client";
 *
 * findChangedFile("write", { path: "a.md", content: "one" }); // "a.md"
 * ```
 */
export function findChangedFile(tool: string, args: unknown): string | undefined {
  return tool === "write" || tool === "edit" ? readText(args, "path") : undefined;
}

/**
 * Returns what a call of the built-in tool `write` or `edit` would make of a file. `before` is the file's present text,
 * empty if there is no file. `undefined` for other calls, and for an edit whose old text is not in the file.
 *
 * @example
 * ```ts
 * import { previewChange } from "kit/client";
 *
 * previewChange({ tool: "edit", args: { path: "a.md", old: "one", new: "two" } }, "one\n")?.after; // "two\n"
 * ```
 */
export function previewChange(
  { tool, args }: { readonly tool: string; readonly args: unknown },
  before: string,
): FileText | undefined {
  const path = findChangedFile(tool, args);
  if (path === undefined) return undefined;
  if (tool === "write") {
    const content = readText(args, "content");
    return content === undefined ? undefined : { path, before, after: content };
  }
  const old = readText(args, "old");
  const replacement = readText(args, "new");
  if (old === undefined || old === "" || replacement === undefined || !before.includes(old)) return undefined;
  const isAll = typeof args === "object" && args !== null && Reflect.get(args, "all") === true;
  // A function, because a text would have its `$&` replaced.
  const after = isAll ? before.replaceAll(old, () => replacement) : before.replace(old, () => replacement);
  return { path, before, after };
}

function readText(args: unknown, name: string): string | undefined {
  const value: unknown = typeof args === "object" && args !== null ? Reflect.get(args, name) : undefined;
  return typeof value === "string" ? value : undefined;
}
