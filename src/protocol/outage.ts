import type { KitError } from "../base/kit-error.ts";
import { ownFolder } from "../base/own-package.ts";
import { isStoreUnavailable, type StoreOutage, storeUnavailable } from "./error-code.ts";

/** The reasons for which a process can do no work, by the codes of the system's errors. */
const shortages: Readonly<Record<string, Omit<StoreOutage, "cause">>> = {
  EMFILE: {
    store: "This process",
    reason: "it has too many files open",
    hint: "Raise its limit: ulimit -n.",
  },
  ENFILE: {
    store: "This machine",
    reason: "it has too many files open",
    hint: "Raise its limit, or end other programs.",
  },
  ENOMEM: { store: "This machine", reason: "it has no memory left", hint: "End other programs." },
  EAGAIN: {
    store: "This machine",
    reason: "it can start no more processes",
    hint: "Raise the limit of processes, or end other programs.",
  },
};

/**
 * The outage that an error stands for: a store that is unavailable, a process without files, memory or processes, or code of
 * kit itself that is missing, as while its package is replaced. No work has caused it, so the work waits, and no
 * attempt is counted. Undefined for any other error.
 */
export function outageOf(error: unknown): KitError | undefined {
  if (isStoreUnavailable(error)) return error;
  let cause = error;
  for (let depth = 0; depth < 5 && cause instanceof Error; depth += 1) {
    const { code, syscall } = cause as { readonly code?: unknown; readonly syscall?: unknown };
    // Sockets report EAGAIN too, when they have nothing to read.
    const isShortage = code !== "EAGAIN" || String(syscall).startsWith("spawn");
    const shortage =
      isShortage && Object.hasOwn(shortages, String(code)) ? shortages[String(code)] : undefined;
    if (shortage !== undefined) return storeUnavailable({ ...shortage, cause: error });
    if (isMissingPart(cause)) {
      return storeUnavailable({
        store: "kit's own code",
        reason: "a file of it is missing",
        hint: "Stop the server before you replace its package, or restart it now.",
        cause: error,
      });
    }
    cause = cause.cause;
  }
  return undefined;
}

/** Whether a call that failed with an outage had certainly done nothing: no process, or no code, was started for it. */
export function isUnstarted(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { syscall } = error as { readonly syscall?: unknown };
  return String(syscall).startsWith("spawn") || isMissingPart(error) || isUnstarted(error.cause);
}

/** Whether a module of kit, or one that kit imports, does not exist. Optional packages have errors of their own. */
function isMissingPart(error: Error): boolean {
  const { code, url, path } = error as { readonly [Key in "code" | "url" | "path"]?: unknown };
  if (code !== "ENOENT" && code !== "ERR_MODULE_NOT_FOUND") return false;
  // The bundle of a Worker has no address, and no part of it can be missing.
  if ((import.meta as Partial<ImportMeta>).url === undefined) return false;
  const folder = decodeURIComponent(new URL(ownFolder()).pathname);
  if (code === "ENOENT") return String(path).startsWith(folder) && /\.[jt]s$/.test(String(path));
  return String(url).startsWith(ownFolder()) || error.message.includes(` imported from ${folder}`);
}
