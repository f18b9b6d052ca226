import { KitError } from "../../base/kit-error.ts";
import type { FilePart, ImagePart, UserMessage } from "../../protocol/message.ts";
import type { PromptFile, PromptImage } from "../../protocol/prompt.ts";
import type { UiMessage, UiPart } from "../../protocol/ui.ts";

export interface UserInput {
  readonly message: string;
  readonly images?: PromptImage[];
  readonly files?: PromptFile[];
}

/** Converts a user's message of a page to a prompt. Throws `invalid_request` for a file that is neither data nor `https:`. */
export function toUserInput({ parts }: UiMessage): UserInput {
  const message = parts
    .filter(({ type }) => type === "text")
    .map(({ text }) => String(text ?? ""))
    .join("");
  const images: PromptImage[] = [];
  const files: PromptFile[] = [];
  for (const part of parts) {
    if (part.type !== "file") continue;
    const { mediaType, url, filename } = part;
    const media_type = String(mediaType ?? "");
    const [, data] = /^data:[^,]{0,200};base64,(.*)$/s.exec(String(url)) ?? [];
    if (data === undefined && !/^https:\/\//.test(String(url))) throw noFile();
    const source = data === undefined ? { url: String(url) } : { data };
    if (media_type.startsWith("image/")) images.push({ ...source, media_type });
    else files.push({ ...source, media_type, ...(typeof filename === "string" ? { filename } : {}) });
  }
  return { message, ...(images.length > 0 && { images }), ...(files.length > 0 && { files }) };
}

function noFile(): KitError {
  return new KitError({
    code: "invalid_request",
    message: "A file of the message can be neither read nor fetched.",
    meta: { issues: [{ path: "body.messages", message: "files must be data: or https: addresses" }] },
  });
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
