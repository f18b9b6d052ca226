import { toFilePart } from "../../agents/file-part.ts";
import { toImagePart } from "../../agents/image-part.ts";
import { checkedText } from "../../agents/operations/check-options.ts";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import type { PromptRequest } from "../../protocol/prompt.ts";
import { keyAsSent } from "./sender-key.ts";

/**
 * What the engine keeps of an input. A dispatched one is kept as it was sent; a prompt has options beside its
 * message, and is told apart by a key that no dispatched input has: `toDispatchInput` sees to that.
 */
const promptKey = "$prompt";

/** An input as the session takes it. */
export interface SessionInput {
  readonly request: PromptRequest;
  /** Chosen by whoever wants to hear of it; else it is made of the dispatch. */
  readonly operationId?: string;
}

export function toPromptInput(request: PromptRequest, operationId?: string): unknown {
  return {
    [promptKey]: checkedPrompt(request),
    ...(operationId === undefined ? {} : { operation_id: operationId }),
  };
}

export function toDispatchInput(input: unknown): unknown {
  if (typeof input === "string" || input === undefined) return checkedText(input ?? "");
  // What looks like a prompt of ours is given as its text, like all other JSON, only sooner.
  return typeof input === "object" && input !== null && promptKey in input ? JSON.stringify(input) : input;
}

export function toSessionInput(input: unknown): SessionInput {
  if (typeof input === "string") return { request: { message: input } };
  if (isPrompt(input)) {
    const { [promptKey]: request, operation_id } = input;
    return { request, ...(operation_id === undefined ? {} : { operationId: operation_id }) };
  }
  return { request: { message: JSON.stringify(input, null, 2) } };
}

/** A record as its reader is told of it: input and key as they were sent. */
export function toSentDispatch(record: DispatchRecord): DispatchRecord {
  const { input, idempotency_key: key } = record;
  return {
    ...record,
    ...(isPrompt(input) ? { input: input[promptKey] } : {}),
    ...(key === undefined ? {} : { idempotency_key: keyAsSent(key) }),
  };
}

/** The id of the operation that works on a dispatch: the same in every attempt. */
export function operationOf(dispatchId: string): string {
  return `op_${dispatchId.slice(dispatchId.indexOf("_") + 1)}`;
}

interface StoredPrompt {
  readonly [promptKey]: PromptRequest;
  readonly operation_id?: string;
}

// Only `toPromptInput` makes values that have the key.
function isPrompt(input: unknown): input is StoredPrompt {
  return typeof input === "object" && input !== null && promptKey in input;
}

function checkedPrompt(request: PromptRequest): PromptRequest {
  checkedText(request.message);
  request.images?.forEach(toImagePart);
  request.files?.forEach(toFilePart);
  return request;
}
