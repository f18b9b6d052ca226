import type { Diagnostic } from "../../protocol/diagnostic.ts";

export interface Problem {
  readonly path: string;
  /** Stable name of the cause. */
  readonly code: string;
  readonly message: string;
}

/** The diagnostic of an existing file or folder that cannot be read. */
export function unreadable({ path, code, message }: Problem): Diagnostic {
  return { severity: "error", rule: "unreadable-file", code, message, path };
}

/** The same from the code of a file system error. The message holds no absolute path. */
export function unreadableBecause(path: string, errorCode: string): Diagnostic {
  const known = causes[errorCode];
  if (known !== undefined) return unreadable({ path, ...known });
  return unreadable({ path, code: "read_failed", message: `It cannot be read (${errorCode}).` });
}

const causes: Readonly<Record<string, { readonly code: string; readonly message: string }>> = {
  EACCES: { code: "no_permission", message: "There is no permission to read it." },
  EPERM: { code: "no_permission", message: "There is no permission to read it." },
  ELOOP: { code: "link_loop", message: "It is a link that leads back to itself." },
  ENOENT: { code: "dangling_link", message: "It is a link to something that does not exist." },
  ENAMETOOLONG: { code: "name_too_long", message: "Its path is longer than the system can open." },
  ENXIO: { code: "not_a_file", message: "It is not a regular file." },
};

/** The code of an error of the file system; "unknown" for anything else. */
export function errorCodeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "unknown";
}
