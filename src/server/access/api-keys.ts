import { createHash, timingSafeEqual } from "node:crypto";

/**
 * Finds which of the keys a request's `Authorization` header holds; gives a name for it that tells
 * nothing about the key, or undefined.
 *
 * Compares digests of equal length in constant time, and always all of them, so that the answer's
 * time says nothing about a key.
 */
export function createKeyCheck(
  keys: readonly string[],
): (authorization: string | undefined) => string | undefined {
  const known = keys.map((key) => {
    const digest = digestOf(key);
    return { digest, id: `key_${digest.toString("hex").slice(0, 12)}` };
  });
  return (authorization) => {
    const token = /^Bearer +([^\s]+) *$/i.exec(authorization ?? "")?.[1];
    if (token === undefined) return undefined;
    const given = digestOf(token);
    let found: string | undefined;
    for (const { digest, id } of known) {
      if (timingSafeEqual(digest, given)) found = id;
    }
    return found;
  };
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
