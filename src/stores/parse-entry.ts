import { KitError } from "../base/kit-error.ts";
import type { SessionEntry } from "../protocol/session-entry.ts";

/** Reads a stored entry, upgrading older versions. Throws `unavailable` for one that is not ours. */
export function parseEntry(text: string): SessionEntry {
  const value: unknown = JSON.parse(text);
  if (
    typeof value === "object" &&
    value !== null &&
    "version" in value &&
    value.version === 1 &&
    "type" in value
  ) {
    return value as SessionEntry;
  }
  throw new KitError({
    code: "unavailable",
    message: "A stored session entry has a version this kit does not know.",
    hint: "Update kit: the session was written by a newer version.",
  });
}
