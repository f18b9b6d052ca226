import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { KitError } from "../../base/kit-error.ts";
import type { ResolvedModel } from "../../models/contract.ts";
import type { FilePart, ImagePart } from "../../protocol/message.ts";

/**
 * A document or a recording for the model: bytes with their media type, or an `https:` address. Each provider supports
 * other types: PDF with Anthropic, OpenAI and Google, audio with Google and with OpenAI's
 * audio models.
 */
export type FileInput =
  | {
      readonly data: Uint8Array | string;
      readonly media_type: string;
      readonly filename?: string | undefined;
    }
  | { readonly url: string; readonly media_type: string; readonly filename?: string | undefined };

const mediaTypePattern = /^[a-z]+\/[\w.+-]{1,100}$/;
/** File names become part of a provider's request, so they must not contain line breaks. */
const filenamePattern = /^[^\p{Cc}/\\]{1,255}$/u;

/** Converts a file input to a message part; a picture becomes an image. Throws `invalid_request` for an invalid file. */
export function toFilePart(file: FileInput): FilePart | ImagePart {
  const { media_type, filename } = file;
  if (typeof media_type !== "string" || !mediaTypePattern.test(media_type))
    throw noFile("has a media_type such as application/pdf or audio/wav");
  if (filename !== undefined && (typeof filename !== "string" || !filenamePattern.test(filename)))
    throw noFile("has a filename without folders and control characters");
  if (media_type.startsWith("image/")) return toImagePart(file);
  const described = { type: "file", media_type, ...(filename === undefined ? {} : { filename }) } as const;
  if ("url" in file) {
    if (typeof file.url !== "string" || !file.url.startsWith("https://") || !URL.canParse(file.url))
      throw noFile("has an address that starts with https://");
    return { ...described, data: file.url };
  }
  const data = file.data instanceof Uint8Array ? base64Of(file.data) : file.data;
  if (typeof data !== "string" || !base64Pattern.test(data))
    throw noFile("has its bytes as `data`, or the same in base64");
  return { ...described, data };
}

/** Throws `invalid_request` for a file that the model cannot read: it would stay in the history forever. */
export function checkFiles(model: ResolvedModel, files: readonly (FilePart | ImagePart)[]): void {
  for (const file of files) {
    if (file.type === "image" || takesFile(model.files, file)) continue;
    const { types = [], urls = [] } = model.files ?? {};
    const isUrl = file.data.startsWith("https:");
    throw new KitError({
      code: "invalid_request",
      message: `${model.name} does not accept ${file.media_type} ${isUrl ? "by URL" : "files"}.`,
      hint:
        isUrl && takesFile(model.files, { ...file, data: "" })
          ? "Pass its bytes as `data`."
          : `It accepts ${[...new Set([...types, ...urls])].join(", ") || "only images"}; another model may accept more.`,
    });
  }
}

/** Whether a model reads such a file. A model without known types gets every file. */
export function takesFile(files: ResolvedModel["files"], { media_type, data }: FilePart): boolean {
  if (files === undefined) return true;
  const patterns = data.startsWith("https:") ? files.urls : files.types;
  return patterns.some((one) =>
    one.endsWith("/*") ? media_type.startsWith(one.slice(0, -1)) : one === media_type,
  );
}

function noFile(what: string): KitError {
  return new KitError({ code: "invalid_request", message: `A file ${what}.` });
}

/** A picture for the model: bytes with their media type, or an `https:` address. */
export type ImageInput =
  | { readonly data: Uint8Array | string; readonly media_type: string }
  | { readonly url: string; readonly media_type?: string | undefined };

const imageTypePattern = /^image\/[\w*.+-]+$/;
const base64Pattern: RegExp = /^[A-Za-z0-9+/]+={0,2}$/;

/**
 * Converts an image input to a message part. Throws `invalid_request` for an invalid image: it would stay in the
 * history, and the provider would refuse every later prompt.
 */
export function toImagePart(image: ImageInput): ImagePart {
  const { media_type = "url" in image ? "image/*" : "" } = image;
  if (!imageTypePattern.test(media_type)) throw noImage("has a media_type such as image/png");
  if ("url" in image) {
    if (typeof image.url !== "string" || !image.url.startsWith("https://") || !URL.canParse(image.url))
      throw noImage("has an address that starts with https://");
    return { type: "image", media_type, data: image.url };
  }
  const data = image.data instanceof Uint8Array ? base64Of(image.data) : image.data;
  if (typeof data !== "string" || !base64Pattern.test(data))
    throw noImage("has its bytes as `data`, or the same in base64");
  return { type: "image", media_type, data };
}

/** Checks an image that a tool returned: a tool in plain JavaScript may return anything. */
export function checkedImagePart({ data, media_type }: ImagePart): ImagePart {
  const isAddress = typeof data === "string" && data.startsWith("https:");
  return toImagePart(isAddress ? { url: data, media_type } : { data, media_type });
}

function noImage(what: string): KitError {
  return new KitError({ code: "invalid_request", message: `An image ${what}.` });
}

/** Bytes as base64, the form of messages. */
export function base64Of(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += 32_768)
    binary += String.fromCharCode(...bytes.subarray(at, at + 32_768));
  return btoa(binary);
}

/** Replaces files that this model does not read with a note; an earlier model read them. */
export function readablePrompt(
  prompt: LanguageModelV4Prompt,
  inHistory: readonly FilePart[],
  files: ResolvedModel["files"],
): LanguageModelV4Prompt {
  if (inHistory.every((file) => takesFile(files, file))) return prompt;
  return prompt.map((message) =>
    message.role === "user"
      ? { ...message, content: message.content.map((part) => replaceUnreadable(part, files)) }
      : message,
  );
}

type UserPart = Extract<LanguageModelV4Prompt[number], { role: "user" }>["content"][number];

function replaceUnreadable(part: UserPart, files: ResolvedModel["files"] | undefined): UserPart {
  if (part.type !== "file" || part.mediaType.startsWith("image/")) return part;
  const { mediaType: media_type, filename = "a file", data } = part;
  if (takesFile(files, { type: "file", media_type, data: data.type === "url" ? "https:" : "" })) return part;
  return { type: "text", text: `[${filename} (${media_type}): this model cannot read it]` };
}
