import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import { thinkingLevels } from "../../protocol/enums.ts";
import type { ChatCompletionBody, OpenAiItem, OpenAiPart, ResponseBody } from "../../protocol/openai.ts";
import type { CallerTool, PastMessage, PromptSettings, PromptToolChoice } from "../../protocol/prompt.ts";
import type { UiPart } from "../../protocol/ui.ts";
import { stringOf, toUserInput } from "../ai-sdk/user-message.ts";

/** A request to an agent. */
export interface OpenAiInput {
  readonly message: string;
  readonly settings: Pick<PromptSettings, "images" | "files" | "thinking_level" | "tools" | "tool_choice">;
  /** The messages before it, oldest first. */
  readonly history: readonly PastMessage[];
  /** The response that the client names as the last one. */
  readonly previous?: string | undefined;
}

/** The results of calls that a request brings instead of a message. */
export interface CallResults {
  readonly results: readonly { readonly path: string; readonly callId: string; readonly text: string }[];
}

/** Reads the messages of Chat Completions. Throws `invalid_request` for what kit cannot do. */
export function toChatInput(body: ChatCompletionBody): OpenAiInput | CallResults {
  const { messages, reasoning_effort: effort } = body;
  refuse(body, { functions: [null, []], n: [null, 1], logprobs: [null, false] });
  refuseFormat("response_format", body.response_format?.type);
  return (
    resultsIn(messages, {
      path: "messages",
      isResult: ({ role }) => role === "tool",
      id: "tool_call_id",
    }) ?? {
      ...toPrompt(messages, { path: "messages", effort, body }),
      history: messages.slice(0, -1).flatMap(toPast),
    }
  );
}

/** Reads the input of Responses. Throws `invalid_request` for what kit cannot do. */
export function toResponseInput(body: ResponseBody): OpenAiInput | CallResults {
  const { input, instructions, reasoning, text } = body;
  refuse(body, { prompt: [null] });
  refuseFormat("text.format", text?.format?.type);
  if (body.store === false && body.background === true)
    throw refused("store", "must be true in the background: nothing else finds the response");
  const items: readonly OpenAiItem[] = typeof input === "string" ? [{ role: "user", content: input }] : input;
  const isResult = ({ type }: OpenAiItem): boolean => type === "function_call_output";
  const results = resultsIn(items, { path: "input", isResult, id: "call_id" });
  if (results !== undefined) return results;
  // Clients that send the whole conversation name answers of kit by their ids: the session has them, and what came before.
  const from = items.findLastIndex(({ type }) => type === "item_reference") + 1;
  const previous = from === 0 ? undefined : responseOfItem(items[from - 1]?.id ?? "");
  if (from > 0 && previous === undefined)
    throw refused(`input.${from - 1}.id`, "is not the id of an item of kit");
  const first: readonly OpenAiItem[] = instructions ? [{ role: "developer", content: instructions }] : [];
  return {
    ...toPrompt(items, { path: "input", effort: reasoning?.effort, body }),
    history: [...first, ...items.slice(from, -1)].flatMap(toPast),
    previous,
  };
}

/** Returns the results of calls at the end of a conversation; undefined if there are none. */
function resultsIn(
  items: readonly OpenAiItem[],
  {
    path,
    isResult,
    id,
  }: {
    readonly path: string;
    readonly isResult: (item: OpenAiItem) => boolean;
    readonly id: "call_id" | "tool_call_id";
  },
): CallResults | undefined {
  const from = items.findLastIndex((item) => !isResult(item)) + 1;
  if (from === items.length) return undefined;
  return {
    results: items.slice(from).map((item, at) => ({
      path: `${path}.${from + at}.${id}`,
      callId: item[id] ?? "",
      text: textOf(item.content) || textOf(item.output),
    })),
  };
}

/** Returns the id of the response that an item belongs to. */
function responseOfItem(id: string): string | undefined {
  const [, operation] = /^(?:msg|rs|fc|ig)_([0-9A-Z]{26}(?:_\d{1,15})?)-[\w-]{1,200}$/.exec(id) ?? [];
  return operation === undefined ? undefined : `resp_${operation}`;
}

/**
 * Converts a part of a conversation to a message. Instructions of a client are words of the sender, and not those of the project;
 * the model no longer has the tools of earlier calls, so it reads those as texts.
 */
function toPast({ type, role, content, ...item }: OpenAiItem): readonly PastMessage[] {
  if (type === "reasoning") return [];
  const said = textOf(content);
  const text = (kind: string, value: unknown): string => (value ? `[${kind}] ${textOf(value)}` : "");
  const other = role === "tool" || type === "function_call_output";
  if (other) return [{ role: "user", content: text("Result of a call", item.output ?? said) }];
  const calls = text("Calls", type === "function_call" ? item : item.tool_calls);
  if (role === "assistant" || type === "function_call")
    return [{ role: "assistant", content: [said, calls].filter((each) => each !== "").join("\n") }];
  const isInstruction = role === "system" || role === "developer";
  return [{ role: "user", content: isInstruction ? text("Instructions of the client", said) : said }];
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content) || content.some((part) => !isRecord(part) || typeof part.type !== "string"))
    return JSON.stringify(content) ?? "";
  return content
    .map((part) => stringOf(part.text ?? part.refusal ?? `[${part.type}]`, "A text of the conversation"))
    .join("");
}

function toPrompt(
  items: readonly OpenAiItem[],
  {
    path: list,
    effort,
    body,
  }: {
    readonly path: string;
    readonly effort: string | null | undefined;
    readonly body: Pick<ResponseBody, "tools" | "tool_choice">;
  },
): Pick<OpenAiInput, "message" | "settings"> {
  const { type, role, content } = items.at(-1) ?? {};
  if (role !== "user" || (type ?? "message") !== "message")
    throw refused(list, "must end with a message of the user, or with results of calls");
  const path = `${list}.${items.length - 1}.content`;
  const given = typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
  const parts = given.map((part, at) => toUiPart(part, `${path}.${at}`));
  const { message, ...files } = toUserInput({ parts }, `body.${path}`);
  if (message.trim() === "") throw refused(path, "must have a text");
  const level = effort === "none" ? "off" : thinkingLevels.find((known) => known === effort);
  const { tools, choice } = toCallerTools(body);
  return {
    message,
    settings: {
      ...files,
      ...(level !== undefined && { thinking_level: level }),
      ...(tools.length > 0 && { tools }),
      ...(choice !== undefined && { tool_choice: choice }),
    },
  };
}

function toUiPart(part: OpenAiPart, path: string): UiPart {
  const of = (field: string): Readonly<Record<string, unknown>> => {
    const inner = part[field];
    return isRecord(inner) ? inner : part;
  };
  const toFile = (url: unknown, mediaType: string, filename?: unknown): UiPart => {
    const [, own] = /^data:([^;,]{1,150})/.exec(typeof url === "string" ? url : "") ?? [];
    return { type: "file", url, mediaType: own ?? mediaType, filename };
  };
  switch (part.type) {
    case "text":
    case "input_text":
      return { type: "text", text: part.text };
    case "image_url":
    case "input_image":
      return toFile(of("image_url").url ?? part.image_url, "image/*");
    case "file":
    case "input_file": {
      const { file_data, file_url, filename } = of("file");
      return toFile(file_data ?? file_url, "application/pdf", filename);
    }
    case "input_audio": {
      const { data, format } = of("input_audio");
      const [kind, sound] = [stringOf(format, "`format` of audio"), stringOf(data, "`data` of audio")];
      return toFile(`data:audio/${kind};base64,${sound}`, "");
    }
    default:
      throw refused(`${path}.type`, "must be a text, an image, a file or audio");
  }
}

/**
 * Returns the functions of the caller that the agent may call, and how the first answer is forced to call one. `none` is about them
 * only: how the agent uses its own tools is no matter of the caller.
 */
function toCallerTools({ tools: given, tool_choice: choice }: Pick<ResponseBody, "tools" | "tool_choice">): {
  readonly tools: readonly CallerTool[];
  readonly choice?: PromptToolChoice | undefined;
} {
  const tools = (given ?? []).map((tool, at): CallerTool => {
    const { name, description, parameters } = tool.function ?? tool;
    if (tool.type !== "function" || name === undefined)
      throw refused(`tools.${at}`, "must be a function with a name: other tools are those of the agent");
    return {
      name,
      ...(description && { description }),
      ...(parameters && { input_schema: { ...parameters } }),
    };
  });
  const checked = (name: unknown): string => {
    const found = tools.find((tool) => tool.name === name);
    if (found === undefined) throw refused("tool_choice", "must name functions of `tools`");
    return found.name;
  };
  switch (isRecord(choice) ? choice.type : (choice ?? "auto")) {
    case "auto":
      return { tools };
    case "none":
      return { tools: [] };
    case "required":
      if (tools.length === 0) throw refused("tool_choice", "cannot be required without `tools`");
      return { tools, choice: "required" };
    case "function":
      return { tools, choice: { tool: checked(nameIn(choice)) } };
    case "allowed_tools": {
      const { mode, tools: allowed } = innerOf(choice, "allowed_tools");
      const names = Array.isArray(allowed) ? allowed.map((tool) => checked(nameIn(tool))) : [];
      if (names.length === 0 || (mode !== "auto" && mode !== "required"))
        throw refused("tool_choice", "must have functions in `tools`, and the mode auto or required");
      return {
        tools: tools.filter(({ name }) => names.includes(name)),
        ...(mode === "required" && { choice: mode }),
      };
    }
    default:
      throw refused("tool_choice", "must be auto, none, required, a function of `tools`, or allowed_tools");
  }
}

/** The fields of an object that Chat Completions nests, and Responses does not. */
function innerOf(value: unknown, field: "function" | "allowed_tools"): Readonly<Record<string, unknown>> {
  if (!isRecord(value)) return {};
  const inner = value[field];
  return isRecord(inner) ? inner : value;
}

function nameIn(value: unknown): unknown {
  return innerOf(value, "function").name;
}

/** Refuses fields with other values than those that mean what an agent does. */
function refuse(
  body: Readonly<Record<string, unknown>>,
  fields: Readonly<Record<string, readonly unknown[]>>,
): void {
  for (const [field, allowed] of Object.entries(fields)) {
    const value = body[field];
    if (value === undefined || allowed.some((one) => JSON.stringify(one) === JSON.stringify(value))) continue;
    throw refused(
      field,
      `must be ${allowed.map((one) => JSON.stringify(one)).join(" or ")}: an agent has no more`,
    );
  }
}

function refuseFormat(path: string, type: string | undefined): void {
  if (type === undefined || type === "text") return;
  throw refused(path, "must be text: the form of typed answers is the `output` of the agent");
}

function refused(path: string, fault: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The request cannot be answered.",
    meta: { issues: [{ path: `body.${path}`, message: fault }] },
  });
}
