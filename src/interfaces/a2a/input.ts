import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import type { A2aMessage, A2aPart } from "../../protocol/a2a.ts";
import type { ApprovalBody } from "../../protocol/approval.ts";
import type { UiPart } from "../../protocol/ui.ts";
import { toUserInput, type UserInput } from "../ai-sdk/user-message.ts";
import { fileTypes } from "./card.ts";
import { a2aError } from "./error.ts";
import { howToAnswer, isAnswered, type WaitingCall } from "./task.ts";

/** Converts a message to a prompt. Throws A2A's error for a part that no agent reads, and `invalid_request`. */
export function toA2aInput({ parts }: A2aMessage): UserInput {
  const text = { type: "text", text: textOf(parts) };
  const input = toUserInput({ parts: [text, ...parts.flatMap(toFile)] }, "message.parts");
  if (input.message === "") throw refused("message.parts", "must have a text or data");
  return input;
}

function textOf(parts: readonly A2aPart[]): string {
  const texts = parts.flatMap(({ text, data, mediaType }) => {
    if (typeof text !== "string") return data === undefined ? [] : [JSON.stringify(data)];
    if (!/^(?:text\/|$)/.test(mediaType ?? "")) throw unreadable(mediaType);
    return [text];
  });
  return texts.join("\n\n");
}

function toFile({ raw, url, mediaType, filename }: A2aPart): readonly UiPart[] {
  if (typeof raw !== "string" && typeof url !== "string") return [];
  if (!fileTypes.some((type) => type === mediaType)) throw unreadable(mediaType);
  const address = typeof raw === "string" ? `data:${mediaType};base64,${raw}` : url;
  return [{ type: "file", mediaType, url: address, ...(filename ? { filename } : {}) }];
}

function unreadable(mediaType: string | null | undefined): KitError {
  const what = mediaType ? `The media type ${mediaType}` : "A file without a media type";
  return a2aError(
    "CONTENT_TYPE_NOT_SUPPORTED",
    `${what} is not read here: the card lists those that are, in defaultInputModes.`,
  );
}

/** The id of the call that a part answers. */
export function answeredCall({ data }: A2aPart): unknown {
  return isRecord(data) ? data.approval_id : undefined;
}

/**
 * Reads the answers to waiting calls, except to those that the sender has decided before. An answer has the id of its call: a text that
 * is delivered again would answer the next call. Only a clear yes approves. Throws `invalid_request` for anything else.
 */
export function toAnswers(
  { parts }: A2aMessage,
  { waiting, decided }: { readonly waiting: readonly WaitingCall[]; readonly decided: ReadonlySet<unknown> },
): ReadonlyMap<string, ApprovalBody> {
  const answers = new Map<string, ApprovalBody>();
  for (const part of parts) {
    const id = answeredCall(part);
    if (decided.has(id)) continue;
    const call = waiting.find(({ approval_id }) => approval_id === id);
    if (call === undefined) {
      const fault = "has an approval_id of no call that waits for you";
      throw refused("message.parts", id === undefined ? `must be ${howToAnswer(waiting[0])}` : fault);
    }
    if (answers.has(call.approval_id)) throw refused("message.parts", "must not answer a call twice");
    answers.set(call.approval_id, toDecision(call, Object(part.data)));
  }
  return answers;
}

interface Answer {
  readonly decision?: unknown;
  readonly reason?: unknown;
  readonly result?: unknown;
}

function toDecision(call: WaitingCall, { decision, reason, result }: Answer): ApprovalBody {
  const hasResult = result !== undefined;
  if (decision === "deny" && !hasResult) {
    const given = typeof reason === "string" && reason !== "" ? reason.slice(0, 10_000) : undefined;
    return { approved: false, reason: given ?? "The calling agent declined." };
  }
  if (hasResult && isAnswered(call) && decision === undefined) return { approved: true, result };
  if (decision === "approve" && !hasResult && !isAnswered(call)) return { approved: true };
  throw refused("message.parts", `must be ${howToAnswer(call)}`);
}

function refused(path: string, message: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The message cannot be taken.",
    meta: { issues: [{ path, message }] },
  });
}
