import { lstat, realpath } from "node:fs/promises";
import { join } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { ignoreMissing } from "../../files/obstacle.ts";
import { writeFileInside } from "../../project/features/write-file.ts";
import type { TemplateFile } from "./template-files.ts";

/** Writes the files that do not exist yet, and returns which ones existed. An existing file is never changed. */
export async function writeTemplate(
  folder: string,
  files: readonly TemplateFile[],
): Promise<{ readonly written: readonly string[]; readonly kept: readonly string[] }> {
  const written: string[] = [];
  const kept: string[] = [];
  for (const { path, content } of files) {
    const isNew = await writeNew(folder, path, content).catch((error: unknown) => {
      throw cannotWrite(path, error);
    });
    (isNew ? written : kept).push(path);
  }
  return { written, kept };
}

async function writeNew(folder: string, path: string, content: string): Promise<boolean> {
  // An existing entry stays, including a dangling link.
  if (await lstat(join(folder, path)).catch(ignoreMissing)) return false;
  const target = { root: await realpath(folder), readOnly: false };
  await writeFileInside(target, { path, content, expected: null });
  return true;
}

function cannotWrite(path: string, cause: unknown): KitError {
  if (cause instanceof KitError && cause.code === "forbidden") {
    const hint = "A folder on its way is a link to somewhere else. Put a folder of the project there.";
    return new KitError({ code: "forbidden", message: cause.message, hint, cause });
  }
  if (cause instanceof KitError && cause.code !== "invalid_request") return cause;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  const why =
    cause instanceof KitError || code === "ENOTDIR"
      ? "a file is where a folder would be"
      : `the system says ${code}`;
  return new KitError({ code: "conflict", message: `${path} cannot be written: ${why}.`, cause });
}
