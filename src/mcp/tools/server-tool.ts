import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import type {
  AnyTool,
  ToolContext,
  ToolDefinition,
  ToolOutput,
  ValidateJson,
} from "../../agents/define/tool.ts";
import { maskSecrets } from "../../agents/secrets.ts";
import { isRecord } from "../../base/record.ts";
import type { McpOrigin } from "../../protocol/event.ts";
import type { ImagePart, TextPart } from "../../protocol/message.ts";
import { cleanLine } from "../clean-text.ts";
import { limits, times } from "../limits.ts";
import type { SchemaObject } from "../schemas/normalize-schema.ts";
import { ServerFailure } from "../servers/server-failure.ts";
import type { ServerLink } from "../servers/server-link.ts";
import { createServerQuestions } from "../servers/server-questions.ts";
import type { ListedTool } from "./listed-tool.ts";

export type Arguments = Readonly<Record<string, unknown>>;

/** Creates the tool that agents call: `mcp__<server>__<tool>`. */
export function createServerTool(link: ServerLink, tool: ListedTool, validateJson: ValidateJson): AnyTool {
  const definition: ToolDefinition<Arguments> = {
    name: tool.fullName,
    description: tool.description,
    input: inputOf(tool, validateJson),
    timeoutMs: timeoutOf(link),
    idempotent: tool.repeatable,
    execute: (args, context) => runServerTool(link, { tool, args }, context),
    servedBy: () => originOf(link, tool),
  };
  return definition;
}

/** The server and tool that a call goes to, for events. */
export function originOf({ name, settings }: ServerLink, tool: ListedTool): McpOrigin {
  return { server: name, tool: tool.name, transport: settings.endpoint.kind === "process" ? "pipe" : "tcp" };
}

/** The longest time of a call, including connecting. */
export function timeoutOf({ settings }: ServerLink): number {
  return settings.connectTimeoutMs + settings.callTimeoutMs + 2 * times.reconnectWait;
}

/** Calls a tool. A failure becomes a result that tells the model what happened and whether the call was done. */
export async function runServerTool(
  link: ServerLink,
  call: { readonly tool: ListedTool; readonly args: Arguments },
  { signal, trace, ask }: Pick<ToolContext, "signal" | "trace" | "ask">,
): Promise<ToolOutput> {
  const mask = (text: string): string => maskSecrets(text, link.settings.secrets);
  const questions = link.settings.canAsk ? createServerQuestions(link.settings, ask) : undefined;
  try {
    return toToolOutput(await link.call({ ...call, trace, ask: questions }, signal), mask);
  } catch (error) {
    if (!(error instanceof ServerFailure)) throw error;
    const problem = `The MCP server "${link.name}" could not run the tool. ${mask(error.message)}`;
    return error.outcome === "unknown"
      ? {
          content: `${problem} It is unknown whether the call was done: check before you repeat it.`,
          isError: true,
          outcome: "unknown",
        }
      : { content: `${problem} The call was not done.`, isError: true };
  }
}

/**
 * Leaves out the nulls of optional properties that take none: models send them for "not given". Arguments that the schema accepts stay
 * as they are.
 */
export async function withoutNulls(
  tool: ListedTool,
  args: unknown,
  validateJson: ValidateJson,
): Promise<{ readonly args: unknown; readonly issues: readonly string[] }> {
  const issues = await issuesOf(tool, args, validateJson);
  if (issues.length === 0) return { args, issues };
  const dropped = dropNulls(tool.schema.checked, args);
  return { args: dropped, issues: await issuesOf(tool, dropped, validateJson) };
}

function dropNulls(schema: unknown, value: unknown): unknown {
  if (!isRecord(schema)) return value;
  const { properties, required, items } = schema;
  if (Array.isArray(value)) return value.map((item) => dropNulls(items, item));
  if (!isRecord(properties) || !isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(
        ([key, part]) =>
          part !== null ||
          (Array.isArray(required) && required.includes(key)) ||
          !refusesNull(properties[key]),
      )
      .map(([key, part]) => [key, dropNulls(properties[key], part)]),
  );
}

/** Whether a schema names types, of which none is null. */
function refusesNull(schema: unknown): boolean {
  if (!isRecord(schema)) return false;
  const { type, enum: values } = schema;
  if (Array.isArray(values)) return !values.includes(null);
  return typeof type === "string" ? type !== "null" : Array.isArray(type) && !type.includes("null");
}

/** The issues of arguments by the tool's schema; empty if only the server can check them. */
export async function issuesOf(
  tool: ListedTool,
  args: unknown,
  validateJson: ValidateJson,
): Promise<readonly string[]> {
  if (!isRecord(args)) return ["the arguments must be an object"];
  try {
    return await validateJson(tool.schema.checked, args);
  } catch {
    // The validator does not support the schema, so the server has to check the arguments.
    return [];
  }
}

function inputOf(
  tool: ListedTool,
  validateJson: ValidateJson,
): StandardSchemaV1<unknown, Arguments> & StandardJSONSchemaV1<unknown, Arguments> {
  const shape = (): Record<string, unknown> => ({ ...tool.schema.bounded });
  return {
    "~standard": {
      version: 1,
      vendor: "kit",
      async validate(value) {
        const { args, issues } = await withoutNulls(tool, value, validateJson);
        if (issues.length > 0) return { issues: issues.map((message) => ({ message })) };
        return { value: args as Arguments };
      },
      jsonSchema: { input: shape, output: shape },
    },
  };
}

type Part = TextPart | ImagePart;

/** Image types that every provider accepts. */
const imageTypes: ReadonlySet<unknown> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/**
 * Converts a server's result for a model: texts and images are passed on, all other parts are named. Structured
 * content becomes JSON if there is no text; with text, the protocol says that it repeats the text. The turn loop cuts
 * long texts.
 *
 * `mask` masks secret values in the texts. Throws `ServerFailure` if the value is not a result.
 */
export function toToolOutput(result: unknown, mask: (text: string) => string): ToolOutput {
  if (!isRecord(result))
    throw new ServerFailure("Its answer is not what the protocol asks for.", { outcome: "unknown" });
  const content = result.content ?? [];
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [content];
  const parts = withImageLimit(toParts(blocks));
  const hasText = blocks.some(
    (block) => typeof block === "string" || (isRecord(block) && block.type === "text"),
  );
  if (!hasText && result.structuredContent !== undefined) {
    parts.unshift({ type: "text", text: toJson(result.structuredContent) });
  }
  return {
    content:
      parts.length === 0
        ? "The tool returned no output."
        : parts.map((part) =>
            part.type === "text"
              ? { type: "text", text: mask(part.text.toWellFormed().replaceAll("\0", "")) }
              : part,
          ),
    ...(result.isError === true ? { isError: true } : {}),
  };
}

/** Cuts a long list to its first and last parts, with a note about the missing ones in between. */
function toParts(blocks: readonly unknown[]): readonly Part[] {
  const dropped = blocks.length - limits.resultParts;
  if (dropped <= 0) return blocks.map(toPart);
  const head = Math.ceil(limits.resultParts * 0.7);
  const remark = note(`${dropped} parts of the result are missing here.`);
  return [...blocks.slice(0, head).map(toPart), remark, ...blocks.slice(head + dropped).map(toPart)];
}

function withImageLimit(parts: readonly Part[]): Part[] {
  let images = 0;
  return parts.map((part) => {
    if (part.type === "image") images += 1;
    return part.type === "image" && images > limits.resultImages
      ? note("Another image is missing, because there are too many.")
      : part;
  });
}

function toPart(block: unknown): Part {
  if (typeof block === "string") return { type: "text", text: block };
  if (!isRecord(block)) return note("A part is missing, because it is not an object.");
  switch (block.type) {
    case "text":
      return { type: "text", text: textOf(block.text) };
    case "image":
      return toImage(block.mimeType, block.data);
    case "audio":
      return note(`Audio of type ${describeName(block.mimeType)}, which models cannot read.`);
    case "resource_link": {
      const title = textOf(block.title) || textOf(block.name);
      const description = cleanLine(textOf(block.description), 300);
      return note(`Resource ${describeName(block.uri)}: ${describeName(title)}. ${description}`);
    }
    case "resource":
      return toResource(isRecord(block.resource) ? block.resource : {});
    default:
      return note(
        `A part of type ${describeName(block.type)} is missing, because kit does not know this type.`,
      );
  }
}

function toResource({ uri, text, blob, mimeType }: SchemaObject): Part {
  if (typeof text === "string") return { type: "text", text: `[Resource ${describeName(uri)}]\n${text}` };
  if (imageTypes.has(mimeType)) return toImage(mimeType, blob);
  return note(`Resource ${describeName(uri)} of type ${describeName(mimeType)}, which is not text.`);
}

function toImage(mediaType: unknown, data: unknown): Part {
  if (typeof mediaType !== "string" || !imageTypes.has(mediaType))
    return note(`An image of type ${describeName(mediaType)}, which models cannot read.`);
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

function note(sentence: string): TextPart {
  return { type: "text", text: `[${sentence.trim()}]` };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function describeName(value: unknown): string {
  return cleanLine(textOf(value), 300) || "unknown";
}
