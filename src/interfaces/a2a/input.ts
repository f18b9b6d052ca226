import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import type { A2aMessage, A2aPart } from "../../protocol/a2a.ts";
import type { ApprovalBody } from "../../protocol/approval.ts";
import type { UiPart } from "../../protocol/ui.ts";
import { toUserInput, type UserInput } from "../ai-sdk/user-message.ts";
import { fileTypes } from "./card.ts";
import { a2aError } from "./error.ts";
import type { WaitingCall } from "./task.ts";

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

/**
 * Reads the answers to waiting calls. A data part can name its call by `approval_id`; anything else answers the only one. Only a clear
 * yes approves. Throws `invalid_request` for anything else.
 */
export function toAnswers(
  { parts }: A2aMessage,
  calls: readonly WaitingCall[],
): ReadonlyMap<string, ApprovalBody> {
  const answers = new Map<string, ApprovalBody>();
  for (const part of parts) {
    const { text, data } = part;
    const calledId = isRecord(data) ? data.approval_id : undefined;
    const call =
      calledId === undefined && calls.length === 1
        ? calls[0]
        : calls.find(({ approval_id }) => approval_id === calledId);
    if (call === undefined)
      throw refused(
        "message.parts",
        calledId === undefined
          ? "must be data with an approval_id, because several calls wait"
          : "has an approval_id of no call that waits for you",
      );
    if (typeof text !== "string" && data === undefined)
      throw refused("message.parts", "must be text or data: an answer takes no files");
    if (answers.has(call.approval_id)) throw refused("message.parts", "must not answer a call twice");
    answers.set(call.approval_id, call.kind === "caller" ? toResult(part, calledId) : toDecision(part));
  }
  return answers;
}

function toResult({ text, data }: A2aPart, calledId: unknown): ApprovalBody {
  const given = calledId !== undefined && isRecord(data) ? data.result : data;
  return { approved: true, result: text ?? given ?? null };
}

const howToAnswer =
  'must be the text "approve", or "deny" and a reason, or data with decision: "approve" or "deny", and a reason';

function toDecision({ text, data }: A2aPart): ApprovalBody {
  const [, word, rest] = /^\s*(approve|deny)\b[\s:,.-]*(.*)$/is.exec(text ?? "") ?? [];
  const { decision = word?.toLowerCase(), reason = rest?.trim() } = isRecord(data) ? data : {};
  if (decision === "approve" && !rest) return { approved: true };
  if (decision !== "deny") throw refused("message.parts", howToAnswer);
  const given = typeof reason === "string" && reason !== "" ? reason.slice(0, 10_000) : undefined;
  return { approved: false, reason: given ?? "The calling agent declined." };
}

function refused(path: string, message: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The message cannot be taken.",
    meta: { issues: [{ path, message }] },
  });
}
