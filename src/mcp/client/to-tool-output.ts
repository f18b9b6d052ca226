import type { ToolOutput } from "../../agents/define/tool.ts";
import type { ImagePart, TextPart } from "../../protocol/message.ts";
import { cleanLine } from "./clean-text.ts";
import { limits } from "./limits.ts";
import { isPlainObject, type SchemaObject } from "./normalize-schema.ts";
import { ServerFailure } from "./server-failure.ts";

type Part = TextPart | ImagePart;

/** Image types that every provider takes. */
const imageTypes: ReadonlySet<unknown> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/**
 * A server's result for a model: texts and images as they are, everything else named, also what kit does not know.
 * Structured content is given as JSON where there is no text; with text it repeats it, by the protocol. The turn loop
 * cuts texts that are too long.
 *
 * `mask` takes secret values out of the texts. Throws `ServerFailure` for what is no result at all.
 */
export function toToolOutput(result: unknown, mask: (text: string) => string): ToolOutput {
  if (!isPlainObject(result))
    throw new ServerFailure("Its answer is not what the protocol asks for.", { outcome: "unknown" });
  const content = result.content ?? [];
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [content];
  const parts = withImageLimit(toParts(blocks));
  const hasText = blocks.some(
    (block) => typeof block === "string" || (isPlainObject(block) && block.type === "text"),
  );
  if (!hasText && result.structuredContent !== undefined) {
    parts.unshift({ type: "text", text: toJson(result.structuredContent) });
  }
  return {
    content:
      parts.length === 0
        ? "The tool gave no output."
        : parts.map((part) => (part.type === "text" ? { type: "text", text: mask(clean(part.text)) } : part)),
    ...(result.isError === true ? { isError: true } : {}),
  };
}

/** The first and the last parts of a list that is too long, and between them how many are missing. */
function toParts(blocks: readonly unknown[]): readonly Part[] {
  const dropped = blocks.length - limits.resultParts;
  if (dropped <= 0) return blocks.map(toPart);
  const head = Math.ceil(limits.resultParts * 0.7);
  const left = note(`${dropped} parts of the result are left out here.`);
  return [...blocks.slice(0, head).map(toPart), left, ...blocks.slice(head + dropped).map(toPart)];
}

function withImageLimit(parts: readonly Part[]): Part[] {
  let images = 0;
  return parts.map((part) => {
    if (part.type === "image") images += 1;
    return part.type === "image" && images > limits.resultImages
      ? note("Another image is left out: there are too many.")
      : part;
  });
}

function toPart(block: unknown): Part {
  if (typeof block === "string") return { type: "text", text: block };
  if (!isPlainObject(block)) return note("A part that is none is left out.");
  switch (block.type) {
    case "text":
      return { type: "text", text: textOf(block.text) };
    case "image":
      return toImage(block.mimeType, block.data);
    case "audio":
      return note(`Audio of type ${named(block.mimeType)}, which models are not given.`);
    case "resource_link": {
      const title = textOf(block.title) || textOf(block.name);
      const description = cleanLine(textOf(block.description), 300);
      return note(`Resource ${named(block.uri)}: ${named(title)}. ${description}`);
    }
    case "resource":
      return toResource(isPlainObject(block.resource) ? block.resource : {});
    default:
      return note(`A part of type ${named(block.type)}, which kit does not know, is left out.`);
  }
}

function toResource({ uri, text, blob, mimeType }: SchemaObject): Part {
  if (typeof text === "string") return { type: "text", text: `[Resource ${named(uri)}]\n${text}` };
  if (imageTypes.has(mimeType)) return toImage(mimeType, blob);
  return note(`Resource ${named(uri)} of type ${named(mimeType)}, which is no text.`);
}

function toImage(mediaType: unknown, data: unknown): Part {
  if (typeof mediaType !== "string" || !imageTypes.has(mediaType))
    return note(`An image of type ${named(mediaType)}, which models are not given.`);
  if (typeof data !== "string") return note("An image that cannot be read.");
  const bytes = Math.floor((data.length * 3) / 4);
  if (bytes > limits.imageBytes) return note(`An image of ${bytes} bytes, which is too large for models.`);
  if (data === "" || !/^[A-Za-z0-9+/]+={0,2}$/.test(data)) return note("An image that cannot be read.");
  return { type: "image", media_type: mediaType, data };
}

function toJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return "[The structured content is nested too deeply.]";
  }
}

// Neither is allowed in the stores: SQLite and Postgres cut or refuse a text at NUL.
function clean(value: string): string {
  return value.toWellFormed().replaceAll("\0", "");
}

function note(sentence: string): TextPart {
  return { type: "text", text: `[${sentence.trim()}]` };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function named(value: unknown): string {
  return cleanLine(textOf(value), 300) || "unknown";
}
