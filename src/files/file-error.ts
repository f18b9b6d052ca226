import { KitError } from "../base/kit-error.ts";

/** The code of an error of the system, such as `ENOENT`. */
export const errorCode = (error: unknown): unknown =>
  error instanceof Error && "code" in error ? error.code : undefined;

export const hasCode = (error: unknown, code: string): boolean => errorCode(error) === code;

/** For `catch`: returns undefined for a missing file, and throws every other error on. */
export function ignoreMissing(error: unknown): undefined {
  if (!hasCode(error, "ENOENT")) throw error;
}

export const forbidden = (message: string): KitError => new KitError({ code: "forbidden", message });

export const invalid = (message: string): KitError => new KitError({ code: "invalid_request", message });

/**
 * Turns an error of the file system into a `KitError` whose message names the file as the caller does, by `path`, and holds no
 * absolute path.
 */
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
      return forbidden(`The system gives no permission for ${path}.`);
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
