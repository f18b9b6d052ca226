import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { EventBody } from "../../protocol/event.ts";
import { base64Of } from "../prompt/input-files.ts";

/** A source on which an answer is based, or a file that the model has made: the body of its event. */
export type Attachment = Extract<EventBody, { readonly type: "source" | "file" }>;

/** Returns undefined for an address that is neither `http:` nor `https:`: pages make links of them. */
export function toAttachment(
  part: Extract<LanguageModelV4StreamPart, { type: "source" | "file" }>,
): Attachment | undefined {
  if (part.type === "file") {
    const { data, mediaType } = part;
    const media_type = shortOf(mediaType);
    if (data.type === "data") {
      const text = typeof data.data === "string" ? data.data : base64Of(data.data);
      return { type: "file", media_type, data: text };
    }
    const { protocol, href } = data.url;
    return protocol === "https:" ? { type: "file", media_type, data: href } : undefined;
  }
  const { id, title } = part;
  const source = { type: "source", source_id: shortOf(id), ...(title && { title: shortOf(title) }) } as const;
  if (part.sourceType === "url")
    return /^https?:\/\//i.test(part.url)
      ? { ...source, url: part.url.slice(0, 8_000).toWellFormed() }
      : undefined;
  const { mediaType, filename } = part;
  return { ...source, media_type: shortOf(mediaType), ...(filename && { filename: shortOf(filename) }) };
}

function shortOf(text: string): string {
  return text.slice(0, 1_000).toWellFormed();
}
