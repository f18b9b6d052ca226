import { attempt } from "../../base/attempt.ts";

/** Converts a typed answer for a schema: JSON, or the text itself where the schema wants a text or the answer is no JSON. */
export function toAnswer(text: string, schema: Readonly<Record<string, unknown>> | undefined): unknown {
  if (schema?.type === "string" && !text.startsWith('"')) return text;
  return attempt(() => JSON.parse(text), text);
}
