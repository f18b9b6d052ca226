import { randomBytes, scryptSync, timingSafeEqual } from "node:crypto";

/** Hashes a password for storage: `<salt>:<hash>`, both in hex. */
export function hashPassword(password: string): string {
  const salt = randomBytes(16);
  return `${salt.toString("hex")}:${scryptSync(password, salt, 32).toString("hex")}`;
}

/** Compares in constant time. A stored value that is not ours never matches. */
export function checkPassword(password: string, stored: string): boolean {
  const [salt, hash] = stored.split(":").map((part) => Buffer.from(part, "hex"));
  if (!salt || !hash || hash.length !== 32) return false;
  return timingSafeEqual(scryptSync(password, salt, 32), hash);
}
