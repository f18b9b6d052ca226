import { createHash } from "node:crypto";
import type { ForkOrigin } from "../../agents/log/fork.ts";
import type { Principal } from "../../protocol/access.ts";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import type { JoinMode, PromptRequest } from "../../protocol/prompt.ts";

// The routes read stored inputs. They load this file without the code that checks new inputs.

/**
 * The engine stores a dispatched input as the caller sent it. A prompt with options is stored below this key, which no
 * dispatched input has: `toDispatchInput` converts such an input to a text.
 */
export const promptKey = "$prompt";

interface StoredPrompt {
  readonly fork?: ForkOrigin;
  readonly [promptKey]: PromptRequest;
  /** The input of a dispatch as it was sent. */
  readonly input?: unknown;
  readonly join?: JoinMode;
}

// Only `toStoredPrompt`, `toForkInput` and `toDispatchInput` make values that have the key.
function isPrompt(input: unknown): input is StoredPrompt {
  return typeof input === "object" && input !== null && promptKey in input;
}

/** Converts a stored input to its prompt. */
export function toPromptRequest(input: unknown): PromptRequest {
  if (typeof input === "string") return { message: input };
  return isPrompt(input) ? input[promptKey] : { message: JSON.stringify(input, null, 2) };
}

/** Returns the record with the input and the idempotency key as the caller sent them. */
export function toSentDispatch(record: DispatchRecord): DispatchRecord {
  const { input, idempotency_key: key } = record;
  return {
    ...record,
    ...(isPrompt(input) ? { input: "input" in input ? input.input : input[promptKey] } : {}),
    ...(key === undefined ? {} : { idempotency_key: key.replace(ownerPattern, "") }),
  };
}

/** Returns the turn that a stored input repeats; undefined for another input. */
export function toFork(input: unknown): ForkOrigin | undefined {
  return isPrompt(input) ? input.fork : undefined;
}

/** Whether the message of a stored input joins the operation that runs. */
export function joins(input: unknown): boolean {
  return isPrompt(input) && input.join === "next_turn";
}

/** Returns the id of a dispatch's operation: the same in every attempt. */
export function operationOf(dispatchId: string): string {
  return `op_${dispatchId.slice(dispatchId.indexOf("_") + 1)}`;
}

/** Returns the id of the dispatch that an operation works on, if it works on one. */
export function dispatchOf(operationId: string): string {
  return `dispatch_${operationId.slice(operationId.indexOf("_") + 1)}`;
}

/** Separates the owner from the key. A header cannot hold it, so no client can send the key of another principal. */
const separator = "§";
const ownerDigits = 32;
const ownerPattern = new RegExp(`^[0-9a-f]{${ownerDigits}}${separator}`);

/**
 * Returns the idempotency key that the engine stores. It includes the principal, so that the same key of another
 * principal names other work, and no principal reads another's reply. Without authentication the key stays as sent.
 */
export function keyOfSender(principal: Principal | undefined, key: string): string {
  if (principal === undefined) return key;
  const owner = createHash("sha256").update(principal.id).digest("hex").slice(0, ownerDigits);
  return `${owner}${separator}${key}`;
}
