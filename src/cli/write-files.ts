import { realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { KitError } from "../base/kit-error.ts";
import { hasCode, systemObstacle } from "../files/obstacle.ts";
import { makeFolderSync } from "../files/replace-file.ts";
import { readFileInside, writeFileInside } from "../project/features/write-file.ts";
import type { ErrorCode } from "../protocol/error-code.ts";
import type { CommandContext } from "./command.ts";
import { usageError } from "./report-error.ts";
import { truncate } from "./text/safe-text.ts";

export interface WriteFilesOptions {
  /** As the user wrote it; created where it is missing. */
  readonly folder: string;
  /** Replaces files with other content. */
  readonly overwrite: boolean;
  readonly context: CommandContext;
}

/**
 * Writes files into a folder, and returns the paths of new and changed ones. Throws `conflict` before anything is
 * written if a file there has other content.
 */
export async function writeFiles(
  files: readonly { readonly path: string; readonly content: string }[],
  { folder, overwrite, context }: WriteFilesOptions,
): Promise<readonly string[]> {
  const absolute = resolve(context.cwd, folder);
  makeNamedFolder(absolute, folder);
  const target = { root: realpathSync(absolute), readOnly: false };
  const changes: { readonly path: string; readonly content: string; readonly expected: Uint8Array | null }[] =
    [];
  for (const { path, content } of files) {
    const existing =
      (await readFileInside(target.root, { path, maxBytes: Number.POSITIVE_INFINITY })) ?? null;
    if (existing !== null && Buffer.from(content).equals(existing)) continue;
    if (existing !== null && !overwrite) throw inTheWay(path);
    changes.push({ path, content, expected: existing });
  }
  for (const change of changes) await writeFileInside(target, { ...change, signal: context.signal });
  return changes.map(({ path }) => path);
}

function inTheWay(path: string): KitError<ErrorCode> {
  return new KitError({
    code: "conflict",
    message: `${path} exists already, with other content; nothing was written.`,
    hint: "Choose another folder, or --overwrite.",
  });
}

/** Makes the folder that the command line names; throws the reason if it cannot. */
export function makeNamedFolder(folder: string, asWritten: string): void {
  const name = truncate(asWritten, 60, "middle");
  try {
    const stats = statSync(folder, { throwIfNoEntry: false });
    if (stats?.isDirectory() === false)
      throw usageError(`${name} is ${stats.isFile() ? "a file" : "not a folder"}.`, "Name a folder.");
    makeFolderSync(folder);
  } catch (error) {
    const why = hasCode(error, "ENOENT") ? "no folder can be made there" : systemObstacle(error);
    if (why === undefined) throw error;
    throw usageError(`${name} cannot be made: ${why}.`, "Name a folder that can be made and written.");
  }
}
