import { textTokens } from "../../base/text-tokens.ts";
import type { Message } from "../../protocol/message.ts";

/** About what an image costs with the hosted models, whatever its size. */
const tokensPerImage = 1_200;

/** Bytes of a document or a recording for each token: about right for a PDF of text, and too many for audio. */
const fileBytesPerToken = 30;

/**
 * A rough count of a message's tokens: a quarter of its characters, a whole token for each character
 * of scripts that are not written with an alphabet. Providers' own counts win where they are known.
 */
export function estimateTokens(message: Message): number {
  let tokens = 4;
  for (const part of message.content) {
    switch (part.type) {
      case "text":
      case "reasoning":
        tokens += textTokens(part.text);
        break;
      case "image":
        tokens += tokensPerImage;
        break;
      case "file":
        // Base64 has four characters for three bytes; nobody knows the size behind an address.
        tokens += part.data.startsWith("https:")
          ? tokensPerImage
          : Math.ceil((part.data.length * 0.75) / fileBytesPerToken);
        break;
      case "tool_call":
        tokens += textTokens(part.tool) + textTokens(JSON.stringify(part.args) ?? "");
        break;
      case "tool_result":
        for (const item of part.content)
          tokens += item.type === "text" ? textTokens(item.text) : tokensPerImage;
        break;
    }
  }
  return tokens;
}
