import type { Message } from "./message.ts";

/** The text of a message, its text parts joined. */
export function textOf(message: Message): string {
  let text = "";
  for (const part of message.content) if (part.type === "text") text += part.text;
  return text;
}
