import { KitError } from "../../base/kit-error.ts";
import type { FilePart, ImagePart, UserMessage } from "../../protocol/message.ts";
import type { PromptFile, PromptImage } from "../../protocol/prompt.ts";
import type { UiMessage, UiPart } from "../../protocol/ui.ts";

export interface UserInput {
  readonly message: string;
  readonly images?: PromptImage[];
  readonly files?: PromptFile[];
}

/**
 * The id of a user's message in a page, whose own id is its operation's unless a client gave it one: an answer has the id of the
 * operation.
 */
export function toMessageId(name: string): string {
  return name.startsWith("op_") ? `user-${name}` : name;
}

/**
 * Converts a user's message of a page, `path` in its request, to a prompt. Throws `invalid_request` for a text that is none, and for a file that is neither
 * data nor `https:`.
 */
export function toUserInput({ parts }: Pick<UiMessage, "parts">, path = "body.messages"): UserInput {
  const message = parts
    .filter(({ type }) => type === "text")
    .map(({ text }) => textOf(text, path))
    .join("");
  const images: PromptImage[] = [];
  const files: PromptFile[] = [];
  for (const part of parts) {
    if (part.type !== "file") continue;
    const { mediaType, url, filename } = part;
    const [media_type, address] = [textOf(mediaType, path), textOf(url, path)];
    const [, data] = /^data:[^,]{0,200};base64,(.*)$/s.exec(address) ?? [];
    if (data === undefined && !/^https:\/\//.test(address))
      throw invalid(
        "A file of the message can be neither read nor fetched.",
        "files must be data: or https: addresses",
        path,
      );
    const source = data === undefined ? { url: address } : { data };
    if (media_type.startsWith("image/")) images.push({ ...source, media_type });
    else files.push({ ...source, media_type, ...(typeof filename === "string" ? { filename } : {}) });
  }
  return { message, ...(images.length > 0 && { images }), ...(files.length > 0 && { files }) };
}

function textOf(field: unknown = "", path: string): string {
  if (typeof field === "string") return field;
  throw invalid(
    "A part of the message is not understood.",
    "must have strings as `text`, `mediaType` and `url`",
    path,
  );
}

/** Throws `invalid_request` for a field of a message that is no string; `what` names it in a sentence. */
export function stringOf(field: unknown, what: string, path = "body"): string {
  if (typeof field === "string") return field;
  throw invalid(`${what} is not understood.`, "must have strings in its parts", path);
}

function invalid(message: string, fault: string, path: string): KitError {
  const issues = [{ path, message: fault }];
  return new KitError({ code: "invalid_request", message, meta: { issues } });
}

/** Converts a file of a stored message for a page. */
export function toUiFile(part: UserMessage["content"][number]): readonly UiPart[] {
  return part.type === "text" ? [] : [toFilePart(part)];
}

function toFilePart(part: FilePart | ImagePart): UiPart {
  const { media_type: mediaType, data } = part;
  const url = /^https:\/\//.test(data) ? data : `data:${mediaType};base64,${data}`;
  const filename = part.type === "file" ? part.filename : undefined;
  return { type: "file", mediaType, url, ...(filename === undefined ? {} : { filename }) };
}
