import { attempt } from "./attempt.ts";

/** Decodes `%20` and the like; returns a text that is not percent-encoded UTF-8, such as "100%", as it is. */
export function percentDecoded(text: string): string {
  if (!text.includes("%")) return text;
  return attempt(() => decodeURIComponent(text), text);
}
