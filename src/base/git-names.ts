/** Characters that macOS ignores in names. */
const ignorable = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/gu;
/** A name that is `.git` on macOS or Windows. */
const gitFolder = /^(?:\.git|git~1)[. ]*(?::|$)/i;
const gitModules = /^(?:\.gitmodules|gitmod~\d+|gi7[0-9a-f]{0,3}~\d+)[. ]*(?::|$)/i;

/**
 * Whether Git could write a file of this name into a work tree: its own check (`verify_path` in `read-cache.c`), with the protections
 * for macOS and Windows. Git checks the names of new entries, and not those of an index that it reads.
 */
export function isSafeName(name: string, isLink = false): boolean {
  return (
    !name.includes("\0") &&
    name.split("/").every((segment) => {
      if (["", ".", ".."].includes(segment)) return false;
      return segment
        .replaceAll(ignorable, "")
        .split("\\")
        .every((part) => !gitFolder.test(part) && !(isLink && gitModules.test(part)));
    })
  );
}
