import { checkCallerTools } from "../../agents/approvals/call-kinds.ts";
import { isToolChoice } from "../../agents/define/profile-settings.ts";
import type { ForkOrigin } from "../../agents/log/fork.ts";
import { checkedText, isForkPlace, isPastMessage } from "../../agents/operations/options.ts";
import { toFilePart, toImagePart } from "../../agents/prompt/input-files.ts";
import { suggest, toSentence } from "../../base/error-text.ts";
import { KitError } from "../../base/kit-error.ts";
import { faultOfName } from "../../base/names.ts";
import { defined } from "../../base/record.ts";
import { isModelChoice, modelChoiceForm } from "../../models/known-models.ts";
import { backendNames, maxModelAttempts } from "../../protocol/enums.ts";
import type { JoinMode, PromptRequest, PromptSettings } from "../../protocol/prompt.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { OpenSessionKey } from "../../protocol/session-name.ts";
import { promptKey } from "./stored-input.ts";

const maxKeyLength = 256;

/**
 * Returns the key without other fields of the caller's object. Throws `invalid_request` for an id that no URL path can
 * hold: ids often come from requests of others, and no request could ever reach such a session.
 */
export function toSessionKey({ agent, instance_id, session }: SessionKey): SessionKey {
  check("id", instance_id);
  check("session", session);
  return new OpenSessionKey({ agent, instance_id }, session);
}

/** Throws `invalid_request` for an idempotency key that is empty, too long or not a text. */
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

/** Converts a prompt with an idempotency key to the form that the engine stores. */
export function toStoredPrompt(request: PromptRequest): unknown {
  return { [promptKey]: checkedPrompt(request) };
}

/** Converts a dispatched input to the form that the engine stores. Throws `invalid_request` for an empty text and for invalid choices. */
export function toDispatchInput(
  input: unknown,
  { join, ...settings }: PromptSettings & { readonly join?: JoinMode | undefined } = {},
): unknown {
  const sent = typeof input === "string" || input === undefined ? checkedText(input ?? "") : input;
  const own = defined(checkedSettings(settings));
  if (join !== undefined) checkJoin(join, own);
  if (Object.keys(own).length > 0 || join !== undefined) {
    const message = typeof sent === "string" ? sent : JSON.stringify(sent, null, 2);
    return { [promptKey]: checkedPrompt({ message, ...own }), input: sent, ...(join && { join }) };
  }
  // JSON that looks like a stored prompt is stored as its text, which the session would get anyway.
  return typeof sent === "object" && sent !== null && promptKey in sent ? JSON.stringify(sent) : sent;
}

/** Converts an input that repeats a turn of another session to the form that the engine stores. */
export function toForkInput(request: PromptRequest, fork: ForkOrigin): unknown {
  const { session, turn_id, without } = fork;
  const forked_from = { session, turn_id, ...(without.length === 0 ? {} : { without }) };
  return { [promptKey]: checkedPrompt(request), input: { ...request, forked_from }, fork };
}

/** Checks the settings of a program, which can be plain JavaScript. A custom backend cannot be stored. */
function checkedSettings(settings: PromptSettings): PromptSettings {
  const { model, backend, client_id, role, thinking_level, omit_rules } = settings;
  const { images, files, tools, tool_choice, history, rewind_before, attempts, fork } = settings;
  if (model !== undefined && !isModelChoice(model)) throw invalid(`\`model\` must be ${modelChoiceForm}`);
  if (backend !== undefined && !backendNames.includes(backend)) {
    const near = typeof backend === "string" ? suggest(backend, backendNames) : undefined;
    const names = `\`backend\` of a dispatch must be one of ${backendNames.join(", ")}`;
    throw invalid(near === undefined ? names : `${names}; did you mean ${near}?`);
  }
  const choices = { model, backend, client_id, role, thinking_level, omit_rules, attempts };
  if (tool_choice !== undefined && !isToolChoice(tool_choice))
    throw invalid('`tool_choice` must be auto, none, required, or { tool: "<name>" }');
  return { ...choices, images, files, tools, tool_choice, history, rewind_before, fork };
}

/** The fields that a message can have which joins a running operation: what else it says, the operation has decided. */
const joiningFields: readonly string[] = ["client_id", "images", "files"];

function checkJoin(join: unknown, settings: object): void {
  if (join !== "next_turn") throw refused("join", 'must be "next_turn"');
  const other = Object.keys(settings).find((field) => !joiningFields.includes(field));
  if (other === undefined) return;
  throw refused(other, "cannot be set for a message that joins a running operation: leave it or `join` out");
}

function invalid(fault: string): KitError {
  return new KitError({ code: "invalid_request", message: toSentence(fault) });
}

/** Throws `invalid_request` for an empty text, and for an invalid image or file. */
export function checkedPrompt(request: PromptRequest): PromptRequest {
  checkedText(request.message);
  request.images?.forEach(toImagePart);
  request.files?.forEach(toFilePart);
  if (request.tools !== undefined) checkCallerTools(request.tools);
  const { attempts = 1, fork, history, rewind_before: rewind } = request;
  if (fork !== undefined && !isForkPlace(fork))
    throw invalid("`fork` must be an object with `before`, the id of a message, and `session`, a name");
  if (fork !== undefined && history !== undefined)
    throw refused("history", "cannot be given with `fork`: the new session has the history of the other one");
  if (fork !== undefined && rewind !== undefined)
    throw refused(
      "rewind_before",
      "cannot be given with `fork`: `fork.before` is the message to go on before",
    );
  if (!Number.isInteger(attempts) || attempts < 1 || attempts > maxModelAttempts)
    throw invalid(`\`attempts\` must be a whole number from 1 to ${maxModelAttempts}`);
  if (history?.every(isPastMessage) === false)
    throw invalid("`history` must be a list of messages: `role` user or assistant, and a text as `content`");
  return request;
}
