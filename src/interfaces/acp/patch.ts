/** A hunk of a text file. */
export interface PatchHunk {
  /** From the top of the repository. */
  readonly path: string;
  readonly isNewFile: boolean;
  readonly oldText: string;
  readonly newText: string;
}

/** Heads that an editor's diff shows by itself. Other modes and binary files are text. */
const usualHeads = ["diff --git ", "index ", "--- ", "+++ ", "new file mode 100644", "deleted file mode "];

const hunkHead = /^@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@/;

/**
 * Reads a patch of Git into its hunks, and into texts for what is no hunk, such as a binary file or the end of a patch that was cut. The
 * authors of the files are hostile: only line feeds end lines, and the head of a hunk says how many lines are its content, so that no
 * content can pass for a head. Every line of the content is in the result.
 */
export function readPatch(patch: string): readonly (PatchHunk | string)[] {
  const parts: (PatchHunk | string)[] = [];
  let file = newFile();
  let rest: string[] = [];
  let hunk: OpenHunk | undefined;
  const endHunk = (): void => {
    if (hunk !== undefined) parts.push(hunk.close());
    hunk = undefined;
  };
  const endRest = (isHead: boolean): void => {
    const lines = isHead ? rest.filter((line) => !usualHeads.some((head) => line.startsWith(head))) : rest;
    if (lines.some((line) => line !== "")) parts.push(lines.join("\n"));
    rest = [];
  };
  for (const line of patch.split("\n")) {
    if (hunk?.take(line) === true) continue;
    endHunk();
    const [head, oldCount = "1", newCount = "1"] = hunkHead.exec(line) ?? [];
    if (line.startsWith("diff --git ")) {
      endRest(false);
      file = newFile();
    } else if (head !== undefined && file.path !== undefined) {
      endRest(!file.hasHunks);
      file.hasHunks = true;
      hunk = new OpenHunk(file.path, file.isNew, [Number(oldCount), Number(newCount)]);
      continue;
    } else if (!file.hasHunks) {
      file.path = pathOf(line, "+++ b/") ?? file.path ?? pathOf(line, "--- a/");
      if (line === "--- /dev/null") file.isNew = true;
    }
    rest.push(line);
  }
  endHunk();
  endRest(false);
  return parts;
}

function newFile(): { path: string | undefined; isNew: boolean; hasHunks: boolean } {
  return { path: undefined, isNew: false, hasHunks: false };
}

/** Git ends a path that has spaces with a tab. */
function pathOf(line: string, head: string): string | undefined {
  return line.startsWith(head) ? line.slice(head.length).replace(/\t$/, "") : undefined;
}

class OpenHunk {
  readonly #path: string;
  readonly #isNewFile: boolean;
  readonly #left: [old: number, next: number];
  #oldText = "";
  #newText = "";

  constructor(path: string, isNewFile: boolean, left: [old: number, next: number]) {
    this.#path = path;
    this.#isNewFile = isNewFile;
    this.#left = left;
  }

  /** Returns whether the line is content of the hunk. */
  take(line: string): boolean {
    const [old, next] = this.#left;
    const sign = line.charAt(0);
    // "\ No newline at end of file"
    if (sign === "\\") return true;
    // With diff.suppressBlankEmpty, Git writes no sign before an empty line.
    const isOld = sign === "-" || sign === " " || sign === "";
    const isNew = sign === "+" || sign === " " || sign === "";
    if ((!isOld && !isNew) || (isOld && old === 0) || (isNew && next === 0)) return false;
    this.#left[0] -= Number(isOld);
    this.#left[1] -= Number(isNew);
    if (isOld) this.#oldText += `${line.slice(1)}\n`;
    if (isNew) this.#newText += `${line.slice(1)}\n`;
    return true;
  }

  close(): PatchHunk {
    return {
      path: this.#path,
      isNewFile: this.#isNewFile,
      oldText: this.#oldText,
      newText: this.#newText,
    };
  }
}
