import { KitError } from "../base/kit-error.ts";
import type { ImagePart } from "../protocol/message.ts";

/** A picture for the model: bytes with their media type, or an `https:` address. */
export type ImageInput =
  | { readonly data: Uint8Array | string; readonly media_type: string }
  | { readonly url: string; readonly media_type?: string | undefined };

const mediaTypePattern = /^image\/[\w*.+-]+$/;
export const base64Pattern: RegExp = /^[A-Za-z0-9+/]+={0,2}$/;

/**
 * Reads an image input as a message carries it. Throws `invalid_request` for what is no image: a provider
 * that refused it would refuse every later prompt as well, for it stands in the history.
 */
export function toImagePart(image: ImageInput): ImagePart {
  const { media_type = "url" in image ? "image/*" : "" } = image;
  if (!mediaTypePattern.test(media_type)) throw noImage("has a media_type such as image/png");
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

/** The same for an image that a tool gives, which may be none where its author wrote plain JavaScript. */
export function checkedImagePart({ data, media_type }: ImagePart): ImagePart {
  const isAddress = typeof data === "string" && data.startsWith("https:");
  return toImagePart(isAddress ? { url: data, media_type } : { data, media_type });
}

function noImage(what: string): KitError {
  return new KitError({ code: "invalid_request", message: `An image ${what}.` });
}

/** Bytes as messages carry them. */
export function base64Of(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += 32_768)
    binary += String.fromCharCode(...bytes.subarray(at, at + 32_768));
  return btoa(binary);
}
