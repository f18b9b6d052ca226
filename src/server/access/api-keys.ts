import { createHash, timingSafeEqual } from "node:crypto";

/**
 * Whether a request's `Authorization` header holds one of the keys.
 *
 * Compares digests of equal length in constant time, and always all of them, so that the answer's
 * time says nothing about a key.
 */
export function createKeyCheck(keys: readonly string[]): (authorization: string | undefined) => boolean {
  const digests = keys.map(digest);
  return (authorization) => {
    const token = /^Bearer +([^\s]+) *$/i.exec(authorization ?? "")?.[1];
    if (token === undefined) return false;
    const given = digest(token);
    let found = false;
    for (const known of digests) {
      if (timingSafeEqual(known, given)) found = true;
    }
    return found;
  };
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
