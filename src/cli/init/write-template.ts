import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import type { TemplateFile } from "./template-files.ts";

/** Writes the files that are not there yet, and says which were. An existing file is never touched. */
export async function writeTemplate(
  folder: string,
  files: readonly TemplateFile[],
): Promise<{ readonly written: readonly string[]; readonly kept: readonly string[] }> {
  const written: string[] = [];
  const kept: string[] = [];
  for (const { path, content } of files) {
    const isNew = await writeNew(join(folder, path), content).catch((error: unknown) => {
      throw cannotWrite(path, error);
    });
    (isNew ? written : kept).push(path);
  }
  return { written, kept };
}

async function writeNew(file: string, content: string): Promise<boolean> {
  await mkdir(dirname(file), { recursive: true });
  try {
    // `wx` fails where there is something already, also a link that leads nowhere.
    await writeFile(file, content, { flag: "wx" });
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}

function cannotWrite(path: string, cause: unknown): KitError {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  const why =
    code === "ENOTDIR" || code === "EEXIST" ? "a file is where a folder would be" : `the system says ${code}`;
  return new KitError({ code: "conflict", message: `${path} cannot be written: ${why}.`, cause });
}
