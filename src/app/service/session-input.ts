import type { ForkOrigin } from "../../agents/log/resume.ts";
import { checkedText } from "../../agents/operations/options.ts";
import { toFilePart, toImagePart } from "../../agents/prompt/input-files.ts";
import { suggest, toSentence } from "../../base/error-text.ts";
import { KitError } from "../../base/kit-error.ts";
import { isModelChoice, modelChoiceForm } from "../../models/known-models.ts";
import { backendNames } from "../../protocol/enums.ts";
import type { PromptChoices, PromptRequest } from "../../protocol/prompt.ts";
import { promptKey } from "./stored-input.ts";

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

/** An input that does a turn of another session again, as the engine keeps it. */
export function toForkInput(request: PromptRequest, fork: ForkOrigin): unknown {
  const { session, turn_id, without } = fork;
  const forked_from = { session, turn_id, ...(without.length === 0 ? {} : { without }) };
  return { [promptKey]: checkedPrompt(request), input: { ...request, forked_from }, fork };
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
