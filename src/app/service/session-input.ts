import { toFilePart } from "../../agents/file-part.ts";
import { toImagePart } from "../../agents/image-part.ts";
import { modelChoice } from "../../agents/model-choice.ts";
import { checkedText } from "../../agents/operations/check-options.ts";
import { KitError } from "../../base/kit-error.ts";
import { suggest } from "../../base/suggest.ts";
import { toSentence } from "../../base/to-sentence.ts";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import { backendNames } from "../../protocol/enums.ts";
import type { PromptChoices, PromptRequest } from "../../protocol/prompt.ts";
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

/** Throws `invalid_request` for a text that is empty, and for choices that a dispatch cannot carry. */
export function toDispatchInput(input: unknown, choices: PromptChoices = {}): unknown {
  const sent = typeof input === "string" || input === undefined ? checkedText(input ?? "") : input;
  const { model, backend } = checkedChoices(choices);
  if (model !== undefined || backend !== undefined) {
    const message = typeof sent === "string" ? sent : JSON.stringify(sent, null, 2);
    return { [promptKey]: { message, model, backend }, input: sent };
  }
  // What looks like a prompt of ours is given as its text, like all other JSON, only sooner.
  return typeof sent === "object" && sent !== null && promptKey in sent ? JSON.stringify(sent) : sent;
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
    ...(isPrompt(input) ? { input: "input" in input ? input.input : input[promptKey] } : {}),
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
  /** Of a dispatch: what was sent. */
  readonly input?: unknown;
}

// Only `toPromptInput` and `toDispatchInput` make values that have the key.
function isPrompt(input: unknown): input is StoredPrompt {
  return typeof input === "object" && input !== null && promptKey in input;
}

/** Those of programs, which plain JavaScript may have written; a backend of one's own cannot be kept on disk. */
function checkedChoices({ model, backend }: PromptChoices): PromptChoices {
  const [expected, isModel] = modelChoice;
  if (model !== undefined && !isModel(model)) throw unfit(`\`model\` must be ${expected}`);
  if (backend !== undefined && !backendNames.includes(backend)) {
    const near = typeof backend === "string" ? suggest(backend, backendNames) : undefined;
    const names = `\`backend\` of a dispatch must be one of ${backendNames.join(", ")}`;
    throw unfit(near === undefined ? names : `${names}; did you mean ${near}?`);
  }
  return { model, backend };
}

function unfit(fault: string): KitError {
  return new KitError({ code: "invalid_request", message: toSentence(fault) });
}

function checkedPrompt(request: PromptRequest): PromptRequest {
  checkedText(request.message);
  request.images?.forEach(toImagePart);
  request.files?.forEach(toFilePart);
  return request;
}
