import { accessSync, closeSync, constants, openSync, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { KitError } from "../base/kit-error.ts";

/**
 * Reasons why kit cannot use a place on the disk, as completions of "it cannot be written: …". Functions return
 * undefined if the system reports no obstacle.
 */
const systemReasons: Readonly<Record<string, string>> = {
  EACCES: "it belongs to another user, or is read-only",
  EDQUOT: "its owner has no disk quota left",
  EEXIST: "a file is where the folder should be",
  EIO: "reading or writing failed",
  ELOOP: "links on the way to it lead to each other",
  EMFILE: "this process has too many files open; raise its limit (ulimit -n)",
  ENFILE: "this machine has too many files open",
  ENAMETOOLONG: "its name is too long",
  ENOSPC: "the disk is full",
  ENOTDIR: "a file is where the folder should be",
  EPERM: "it belongs to another user, or is read-only",
  EROFS: "its disk is read-only",
};

/** The obstacle that a system error stands for. */
export function systemObstacle(error: unknown): string | undefined {
  const code = errorCode(error);
  return typeof code === "string" && Object.hasOwn(systemReasons, code) ? systemReasons[code] : undefined;
}

/** Whether a system error says that too many files are open. */
export function isShortage(error: unknown): boolean {
  const code = errorCode(error);
  return code === "EMFILE" || code === "ENFILE";
}

/** A database, its write-ahead log, the log's index, and one more. */
const filesOfDatabase = 4;

/** The obstacle that keeps this process from opening as many files as a database needs. */
export function openObstacle(): string | undefined {
  const opened: number[] = [];
  try {
    for (let count = 0; count < filesOfDatabase; count += 1) opened.push(openSync(process.execPath, "r"));
    return undefined;
  } catch (error) {
    return isShortage(error) ? systemObstacle(error) : undefined;
  } finally {
    for (const file of opened) closeSync(file);
  }
}

/** The obstacle that keeps kit from creating files in a folder, or the folder itself. */
export function writeObstacle(folder: string): string | undefined {
  try {
    const found = statSync(folder, { throwIfNoEntry: false });
    if (found !== undefined && !found.isDirectory()) return "a file is where the folder should be";
    const existing = found === undefined ? dirname(folder) : folder;
    accessSync(existing, constants.W_OK | constants.X_OK);
    return spaceObstacle(existing);
  } catch (error) {
    return systemObstacle(error) ?? "it cannot be accessed";
  }
}

/**
 * The obstacle that keeps this process from using a path in the given mode (`fs.constants`). `name` is the path's
 * name in the message.
 */
export function accessObstacle(path: string, mode: number, name: string): string | undefined {
  try {
    accessSync(path, mode);
    return undefined;
  } catch (error) {
    const code = errorCode(error);
    if (code === "EACCES" || code === "EPERM") return `${name} belongs to another user, or is read-only`;
    return code === "ENOENT" ? `${name} does not exist` : systemObstacle(error);
  }
}

/** The obstacle of a full disk, for a folder. */
export function spaceObstacle(folder: string): string | undefined {
  try {
    const { bavail, files, ffree } = statfsSync(folder);
    return bavail === 0 || (files > 0 && ffree === 0) ? systemReasons.ENOSPC : undefined;
  } catch {
    return undefined;
  }
}

/** The code of a system error, such as `ENOENT`. */
const errorCode = (error: unknown): unknown =>
  error instanceof Error && "code" in error ? error.code : undefined;

export const hasCode = (error: unknown, code: string): boolean => errorCode(error) === code;

/** For `catch`: returns undefined for a missing file, and rethrows every other error. */
export function ignoreMissing(error: unknown): undefined {
  if (!hasCode(error, "ENOENT")) throw error;
}

export const forbidden = (message: string): KitError => new KitError({ code: "forbidden", message });

export const invalid = (message: string): KitError => new KitError({ code: "invalid_request", message });

/** Turns a file system error into a `KitError` whose message names the file by `path` and contains no absolute path. */
export function toFileError(error: unknown, path: string): KitError {
  if (error instanceof KitError) return error;
  switch (errorCode(error)) {
    case "ENOENT":
      return new KitError({ code: "not_found", message: `${path} does not exist.`, cause: error });
    case "ENAMETOOLONG":
      return invalid(`${path.slice(0, 80)}… is too long for a file name.`);
    case "EISDIR":
      return invalid(`${path} is a folder.`);
    case "ENOTDIR":
    case "EEXIST":
      return invalid(`A file is in the way of ${path}.`);
    case "ENXIO":
    case "ELOOP":
      return forbidden(`${path} is not a regular file.`);
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return forbidden(`The system denies access to ${path}.`);
    case "ENOSPC":
    case "EDQUOT":
      return new KitError({ code: "unavailable", message: "There is no space left to write.", cause: error });
    default:
      return new KitError({
        code: "unavailable",
        message: `${path} cannot be accessed now.`,
        cause: error,
      });
  }
}

/** The path of a name in a folder; "" is the root. */
export function joinPath(folder: string, name: string): string {
  return folder === "" ? name : `${folder}/${name}`;
}
