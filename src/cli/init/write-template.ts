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
  for (const file of files) {
    const path = join(folder, file.path);
    try {
      await mkdir(dirname(path), { recursive: true });
      // `wx` fails where there is something already, also a link that leads nowhere.
      await writeFile(path, file.content, { flag: "wx" });
      written.push(file.path);
    } catch (error) {
      if (!isCode(error, "EEXIST")) {
        throw cannotWrite(file.path, error);
      }
      kept.push(file.path);
    }
  }
  return { written, kept };
}

function isCode(error: unknown, code: string): boolean {
  return typeof error === "object" && error !== null && "code" in error && error.code === code;
}

function cannotWrite(path: string, cause: unknown): KitError {
  return new KitError({ code: "invalid_request", message: `${path} cannot be written.`, cause });
}
