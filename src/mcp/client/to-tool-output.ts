import type { CallToolResult } from "@modelcontextprotocol/client";
import type { ToolOutput } from "../../agents/tool.ts";
import type { ImagePart, TextPart } from "../../protocol/message.ts";
import { cutText } from "../bounds.ts";
import { cleanLine } from "./clean-text.ts";
import { limits } from "./limits.ts";

type ContentBlock = CallToolResult["content"][number];
type Part = TextPart | ImagePart;

/** Image types that every provider takes. */
const imageTypes: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/**
 * A server's result for a model: texts and images as they are, other things named. Structured content is
 * given as JSON where there is no text; with text it repeats it, by the protocol.
 *
 * `mask` takes secret values out of the texts.
 */
export function toToolOutput(result: CallToolResult, mask: (text: string) => string): ToolOutput {
  const parts: Part[] = [];
  let chars = 0;
  let images = 0;
  for (const block of result.content.slice(0, limits.resultParts)) {
    const part = toPart(block);
    if (part.type === "text") {
      if (chars > limits.resultChars) continue;
      const { content } = cutText(mask(part.text), limits.resultChars);
      chars += content.length;
      parts.push({ type: "text", text: content });
    } else {
      images += 1;
      parts.push(
        images > limits.resultImages ? note("Another image is left out: there are too many.") : part,
      );
    }
  }
  if (result.content.length > limits.resultParts) {
    parts.push(note(`${result.content.length - limits.resultParts} more parts are left out.`));
  }
  if (!parts.some((part) => part.type === "text") && result.structuredContent !== undefined) {
    parts.unshift({ type: "text", text: mask(toJson(result.structuredContent)) });
  }
  return {
    content: parts.length === 0 ? "The tool gave no output." : parts,
    ...(result.isError === true ? { isError: true } : {}),
  };
}

function toPart(block: ContentBlock): Part {
  switch (block.type) {
    case "text":
      return text(block.text);
    case "image":
      return toImage(block.mimeType, block.data);
    case "audio":
      return note(`Audio of type ${named(block.mimeType)}, which models are not given.`);
    case "resource_link":
      return note(
        `Resource ${named(block.uri)}: ${named(block.title ?? block.name)}. ${named(block.description ?? "")}`,
      );
    case "resource": {
      const { resource } = block;
      if ("text" in resource) return text(`[Resource ${named(resource.uri)}]\n${resource.text}`);
      if (imageTypes.has(resource.mimeType ?? "")) return toImage(resource.mimeType ?? "", resource.blob);
      return note(
        `Resource ${named(resource.uri)} of type ${named(resource.mimeType ?? "unknown")}, which is no text.`,
      );
    }
  }
}

function toImage(mediaType: string, data: string): Part {
  if (!imageTypes.has(mediaType))
    return note(`An image of type ${named(mediaType)}, which models are not given.`);
  const bytes = Math.floor((data.length * 3) / 4);
  if (bytes > limits.imageBytes) return note(`An image of ${bytes} bytes, which is too large for models.`);
  if (data === "" || !/^[A-Za-z0-9+/]+={0,2}$/.test(data)) return note("An image that cannot be read.");
  return { type: "image", media_type: mediaType, data };
}

function toJson(value: unknown): string {
  try {
    return cutText(JSON.stringify(value), limits.resultChars).content;
  } catch {
    return "[The structured content is nested too deeply.]";
  }
}

// Neither is allowed in the stores: SQLite and Postgres cut or refuse a text at NUL.
function text(value: string): TextPart {
  return { type: "text", text: value.toWellFormed().replaceAll("\0", "") };
}

function note(sentence: string): TextPart {
  return { type: "text", text: `[${sentence.trim()}]` };
}

function named(value: string): string {
  return cleanLine(value, 300);
}
