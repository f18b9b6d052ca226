import { createHash } from "node:crypto";
import type { ForkOrigin } from "../../agents/log/resume.ts";
import type { Principal } from "../../protocol/access.ts";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import type { PromptRequest } from "../../protocol/prompt.ts";

// The routes read stored inputs, and load for it nothing of what checks new ones.

/**
 * The engine keeps a dispatched input as it was sent. A stored prompt has options beside its message: it lies below a
 * key that no dispatched input has, because `toDispatchInput` gives such an input as its text.
 */
export const promptKey = "$prompt";

interface StoredPrompt {
  readonly fork?: ForkOrigin;
  readonly [promptKey]: PromptRequest;
  /** The input of a dispatch as it was sent. */
  readonly input?: unknown;
}

// Only `toStoredPrompt`, `toForkInput` and `toDispatchInput` make values that have the key.
function isPrompt(input: unknown): input is StoredPrompt {
  return typeof input === "object" && input !== null && promptKey in input;
}

/** The prompt that a stored input stands for. */
export function toPromptRequest(input: unknown): PromptRequest {
  if (typeof input === "string") return { message: input };
  return isPrompt(input) ? input[promptKey] : { message: JSON.stringify(input, null, 2) };
}

/** A record as its reader is told of it: input and key as they were sent. */
export function toSentDispatch(record: DispatchRecord): DispatchRecord {
  const { input, idempotency_key: key } = record;
  return {
    ...record,
    ...(isPrompt(input) ? { input: "input" in input ? input.input : input[promptKey] } : {}),
    ...(key === undefined ? {} : { idempotency_key: keyAsSent(key) }),
  };
}

/** The turn that a stored input does again; undefined for another input. */
export function toFork(input: unknown): ForkOrigin | undefined {
  return isPrompt(input) ? input.fork : undefined;
}

/** The id of the operation that works on a dispatch: the same in every attempt. */
export function operationOf(dispatchId: string): string {
  return `op_${dispatchId.slice(dispatchId.indexOf("_") + 1)}`;
}

/** Stands between the owner and the key: a header's key cannot hold it, so no client can write the key of another. */
const separator = "§";
const ownerDigits = 32;
const ownerPattern = new RegExp(`^[0-9a-f]{${ownerDigits}}${separator}`);

/**
 * The idempotency key as the engine keeps it: each principal has keys of its own, so that the same key of another
 * principal is other work, and no reply is given away. On a server without authentication the key stays as sent.
 */
export function keyOfSender(principal: Principal | undefined, key: string): string {
  if (principal === undefined) return key;
  const owner = createHash("sha256").update(principal.id).digest("hex").slice(0, ownerDigits);
  return `${owner}${separator}${key}`;
}

/** A kept key as its sender wrote it. */
function keyAsSent(key: string): string {
  return key.replace(ownerPattern, "");
}
