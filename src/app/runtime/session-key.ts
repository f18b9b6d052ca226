import { KitError } from "../../base/kit-error.ts";
import { faultOfName } from "../../base/names.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";

const maxKeyLength = 256;

/**
 * The key alone, without other fields of the caller's object. Ids are often made of what others send: throws
 * `invalid_request` for one that no path can name, because no request could ever reach that session.
 */
export function toSessionKey({ agent, instance_id, session }: SessionKey): SessionKey {
  check("id", instance_id);
  check("session", session);
  return { agent, instance_id, session };
}

/** Throws `invalid_request` for an idempotency key that is empty, too long or no text. */
export function toIdempotencyKey<Key extends string | undefined>(key: Key): Key {
  if (key === undefined) return key;
  const isKey = typeof key === "string" && key !== "" && key.length <= maxKeyLength;
  if (isKey && key.isWellFormed() && !/\p{Cc}/u.test(key)) return key;
  throw refused("idempotencyKey", `must have 1 to ${maxKeyLength} characters, and no control characters`);
}

function check(path: string, value: unknown): void {
  const fault = typeof value === "string" ? faultOfName(value) : "must be a string";
  if (fault !== undefined) throw refused(path, fault);
}

function refused(path: string, fault: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: `The work cannot be accepted: \`${path}\` ${fault}.`,
    meta: { issues: [{ path, message: fault }] },
  });
}
