import { createHash } from "node:crypto";
import type { Principal } from "../../protocol/access.ts";

/** Between whose a key is and the key: no character of a header's key, so that nobody can write another's. */
const separator = "§";
const ownerDigits = 32;
const ownerPattern = new RegExp(`^[0-9a-f]{${ownerDigits}}${separator}`);

/**
 * The idempotency key under which work of somebody's is kept: each principal has keys of its own. Work that another
 * asked for under the same key is other work, and its answer is not given away. Where nobody is asked who they are,
 * the key is as it was sent.
 */
export function keyOfSender(principal: Principal | undefined, key: string): string {
  if (principal === undefined) return key;
  const owner = createHash("sha256").update(principal.id).digest("hex").slice(0, ownerDigits);
  return `${owner}${separator}${key}`;
}

/** A kept key as its sender wrote it. */
export function keyAsSent(key: string): string {
  return key.replace(ownerPattern, "");
}
