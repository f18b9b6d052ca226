import { type RunGitOptions, runGit } from "../../../processes/git.ts";

const objectsPerCall = 200;

/**
 * The contents of blobs by the names that Git has for them, in the same order; undefined for one that the repository lacks. Undefined if
 * Git cannot answer.
 */
export async function readObjects(
  names: readonly string[],
  options: RunGitOptions,
): Promise<readonly (Buffer | undefined)[] | undefined> {
  const contents: (Buffer | undefined)[] = [];
  for (let from = 0; from < names.length; from += objectsPerCall) {
    const some = names.slice(from, from + objectsPerCall);
    const input = some.map((name) => `${name}\n`).join("");
    const maxBytes = 512 * 1024 * 1024;
    const result = await runGit(["cat-file", "--batch"], { ...options, input, maxBytes });
    if (result.status !== "ok") return undefined;
    const { stdout } = result;
    let at = 0;
    for (let asked = 0; asked < some.length; asked += 1) {
      // Each answer is such a line, the content and a line end; or a line that says that nothing is there.
      const end = stdout.indexOf("\n", at);
      if (end === -1) return undefined;
      const found = /^[0-9a-f]{40,64} (\w+) (\d+)$/.exec(stdout.toString("utf8", at, end));
      at = end + 1;
      const length = Number(found?.[2] ?? 0);
      contents.push(found?.[1] === "blob" ? stdout.subarray(at, at + length) : undefined);
      if (found !== null) at += length + 1;
    }
  }
  return contents;
}
