import { createHash } from "node:crypto";
import type { ForkOrigin } from "../../agents/log/fork.ts";
import { checkedText } from "../../agents/operations/options.ts";
import { toFilePart, toImagePart } from "../../agents/prompt/input-files.ts";
import { KitError } from "../../base/kit-error.ts";
import { suggest } from "../../base/suggest.ts";
import { toSentence } from "../../base/to-sentence.ts";
import { isModelChoice, modelChoiceForm } from "../../models/known-models.ts";
import type { Principal } from "../../protocol/access.ts";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import { backendNames } from "../../protocol/enums.ts";
import type { PromptChoices, PromptRequest } from "../../protocol/prompt.ts";

/**
 * The engine keeps a dispatched input as it was sent. A stored prompt has options beside its message: it lies below a
 * key that no dispatched input has, because `toDispatchInput` gives such an input as its text.
 */
const promptKey = "$prompt";

/** An input as the session takes it. */
export interface SessionInput {
  readonly request: PromptRequest;
  readonly operationId: string;
}

/** A prompt with an idempotency key, as the engine keeps it. */
export function toStoredPrompt(request: PromptRequest): unknown {
  return { [promptKey]: checkedPrompt(request) };
}

/** Throws `invalid_request` for a text that is empty, and for choices that a dispatch cannot carry. */
export function toDispatchInput(input: unknown, choices: PromptChoices = {}): unknown {
  const sent = typeof input === "string" || input === undefined ? checkedText(input ?? "") : input;
  const { model, backend } = checkedChoices(choices);
  if (model !== undefined || backend !== undefined) {
    const message = typeof sent === "string" ? sent : JSON.stringify(sent, null, 2);
    return { [promptKey]: { message, model, backend }, input: sent };
  }
  // JSON that looks like a stored prompt is kept as its text, which the session would be given anyway.
  return typeof sent === "object" && sent !== null && promptKey in sent ? JSON.stringify(sent) : sent;
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

/** The id of the operation that works on a dispatch: the same in every attempt. */
export function operationOf(dispatchId: string): string {
  return `op_${dispatchId.slice(dispatchId.indexOf("_") + 1)}`;
}

/** An input that does a turn of another session again, as the engine keeps it. */
export function toForkInput(request: PromptRequest, fork: ForkOrigin): unknown {
  const { session, turn_id, without } = fork;
  const forked_from = { session, turn_id, ...(without.length === 0 ? {} : { without }) };
  return { [promptKey]: checkedPrompt(request), input: { ...request, forked_from }, fork };
}

/** The turn that a stored input does again; undefined for another input. */
export function toFork(input: unknown): ForkOrigin | undefined {
  return isPrompt(input) ? input.fork : undefined;
}

interface StoredPrompt {
  readonly fork?: ForkOrigin;
  readonly [promptKey]: PromptRequest;
  /** The input of a dispatch as it was sent. */
  readonly input?: unknown;
}

// Only `toStoredPrompt` and `toDispatchInput` make values that have the key.
function isPrompt(input: unknown): input is StoredPrompt {
  return typeof input === "object" && input !== null && promptKey in input;
}

/** Checks choices of a program, which may be plain JavaScript; a custom backend cannot be kept on disk. */
function checkedChoices({ model, backend }: PromptChoices): PromptChoices {
  if (model !== undefined && !isModelChoice(model)) throw unfit(`\`model\` must be ${modelChoiceForm}`);
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

/** Throws `invalid_request` for an empty text, and for an image or a file that is none. */
export function checkedPrompt(request: PromptRequest): PromptRequest {
  checkedText(request.message);
  request.images?.forEach(toImagePart);
  request.files?.forEach(toFilePart);
  return request;
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
