import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import { thinkingLevels } from "../../protocol/enums.ts";
import type {
  ChatCompletionBody,
  OpenAiItem,
  OpenAiMessage,
  OpenAiPart,
  ResponseBody,
} from "../../protocol/openai.ts";
import type { CallerTool, PastMessage, PromptSettings } from "../../protocol/prompt.ts";
import type { UiPart } from "../../protocol/ui.ts";
import { toUserInput } from "../ai-sdk/user-message.ts";

/** A request to an agent. */
export interface OpenAiInput {
  readonly message: string;
  readonly settings: Pick<PromptSettings, "images" | "files" | "thinking_level" | "tools">;
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
  const { messages, n, logprobs, response_format: format, reasoning_effort: effort } = body;
  if ((body.functions ?? []).length > 0) throw refused("functions", "must be empty: name functions in tools");
  if (n !== undefined && n !== null && n !== 1) throw refused("n", "must be 1: an agent gives one answer");
  if (logprobs === true) throw refused("logprobs", "must be false: an agent does not tell them");
  refuseFormat("response_format", format?.type);
  const from = messages.findLastIndex(({ role }) => role !== "tool") + 1;
  if (from < messages.length)
    return {
      results: messages.slice(from).map(({ tool_call_id, content }, at) => ({
        path: `messages.${from + at}.tool_call_id`,
        callId: tool_call_id ?? "",
        text: textOf(content),
      })),
    };
  const last = messages.at(-1);
  if (last?.role !== "user")
    throw refused("messages", "must end with a message of the user, or results of tools");
  return {
    ...toPrompt(last.content, { path: `messages.${messages.length - 1}.content`, effort, body }),
    history: messages.slice(0, -1).flatMap((message) => toPast(message.role, chatText(message))),
  };
}

/** Reads the input of Responses. Throws `invalid_request` for what kit cannot do. */
export function toResponseInput(body: ResponseBody): OpenAiInput | CallResults {
  const { input, instructions, prompt, reasoning, text, store, background } = body;
  refuseFormat("text.format", text?.format?.type);
  if (prompt !== undefined && prompt !== null) throw refused("prompt", "is not known: kit stores no prompts");
  if (store === false && background === true)
    throw refused("store", "must be true in the background: nothing else finds the response");
  const items: readonly OpenAiItem[] = typeof input === "string" ? [{ role: "user", content: input }] : input;
  const given = items.findLastIndex(({ type }) => type !== "function_call_output") + 1;
  if (given < items.length)
    return {
      results: items.slice(given).map((item, at) => ({
        path: `input.${given + at}.call_id`,
        callId: item.call_id ?? "",
        text: typeof item.output === "string" ? item.output : JSON.stringify(item.output ?? ""),
      })),
    };
  // Clients that send the whole conversation name answers of kit by their ids: the session has them, and what came before.
  const from = items.findLastIndex(({ type }) => type === "item_reference") + 1;
  const last = items.at(-1);
  if (last?.role !== "user" || !isMessage(last))
    throw refused("input", "must end with a message of the user, or outputs of functions");
  const previous = from === 0 ? undefined : responseOfItem(items[from - 1]?.id ?? "");
  if (from > 0 && previous === undefined)
    throw refused(`input.${from - 1}.id`, "is not the id of an item of kit");
  const history = items.slice(from, -1).flatMap((item, at) => toPastItem(item, from + at));
  return {
    ...toPrompt(last.content, { path: `input.${items.length - 1}.content`, effort: reasoning?.effort, body }),
    history: [...toPast("developer", instructions ?? ""), ...history],
    previous,
  };
}

/** Returns the id of the response that an item belongs to. */
function responseOfItem(id: string): string | undefined {
  const [, operation] = /^(?:msg|rs|fc)_([0-9A-Z]{26}(?:_\d{1,15})?)_\d{1,6}$/.exec(id) ?? [];
  return operation === undefined ? undefined : `resp_${operation}`;
}

function isMessage({ type }: OpenAiItem): boolean {
  return type === undefined || type === null || type === "message";
}

function toPastItem(item: OpenAiItem, at: number): readonly PastMessage[] {
  if (isMessage(item)) return toPast(item.role ?? "user", textOf(item.content));
  switch (item.type) {
    case "reasoning":
      return [];
    case "function_call":
      return toPast("assistant", callText(item.name, item.arguments));
    case "function_call_output":
      return toPast("user", resultText(item.output));
    default:
      throw refused(`input.${at}.type`, "must be message, reasoning, function_call or function_call_output");
  }
}

function chatText({ role, content, tool_calls }: OpenAiMessage): string {
  const text = textOf(content);
  if (role === "tool" || role === "function") return resultText(text);
  const calls = (tool_calls ?? []).map((call) => {
    const { name, arguments: args } = isRecord(call) && isRecord(call.function) ? call.function : {};
    return callText(name, args);
  });
  return [text, ...calls].filter((each) => each !== "").join("\n");
}

/** The calls of an earlier tool of the caller are told as texts: the model has that tool no more. */
function callText(name: unknown, args: unknown): string {
  return `[Called ${String(name)} with ${typeof args === "string" ? args : JSON.stringify(args)}]`;
}

function resultText(output: unknown): string {
  return `[It returned: ${typeof output === "string" ? output : JSON.stringify(output)}]`;
}

/** A message that was said. Instructions of a client are words of the sender, and not those of the project. */
function toPast(role: string, text: string): readonly PastMessage[] {
  if (text === "") return [];
  if (role === "assistant") return [{ role, content: text }];
  const isInstruction = role === "system" || role === "developer";
  return [{ role: "user", content: isInstruction ? `[Instructions of the client]\n${text}` : text }];
}

function textOf(content: OpenAiMessage["content"]): string {
  if (typeof content === "string") return content;
  return (content ?? [])
    .map((part) => {
      const { text, refusal } = part;
      if (typeof text === "string") return text;
      return typeof refusal === "string" ? refusal : `[${part.type}]`;
    })
    .join("");
}

function toPrompt(
  content: OpenAiMessage["content"],
  {
    path,
    effort,
    body,
  }: {
    readonly path: string;
    readonly effort: string | null | undefined;
    readonly body: Pick<ResponseBody, "tools" | "tool_choice">;
  },
): Pick<OpenAiInput, "message" | "settings"> {
  const given = typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
  const parts = given.map((part, at) => toUiPart(part, `${path}.${at}`));
  const { message, ...files } = toUserInput({ parts }, `body.${path}`);
  if (message.trim() === "") throw refused(path, "must have a text");
  const level = effort === "none" ? "off" : thinkingLevels.find((known) => known === effort);
  const tools = toCallerTools(body);
  return {
    message,
    settings: {
      ...files,
      ...(level !== undefined && { thinking_level: level }),
      ...(tools.length > 0 && { tools }),
    },
  };
}

function toUiPart(part: OpenAiPart, path: string): UiPart {
  const of = (field: string): Readonly<Record<string, unknown>> => {
    const inner = part[field];
    return isRecord(inner) ? inner : part;
  };
  const toFile = (url: unknown, mediaType: string, filename?: unknown): UiPart => {
    const [, own] = /^data:([^;,]{1,150})/.exec(String(url)) ?? [];
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
      return toFile(`data:audio/${String(format)};base64,${String(data)}`, "");
    }
    default:
      throw refused(`${path}.type`, "must be a text, an image, a file or audio");
  }
}

function toCallerTools({
  tools,
  tool_choice: choice = "auto",
}: Pick<ResponseBody, "tools" | "tool_choice">): CallerTool[] {
  if (choice === "none") return [];
  if (choice !== "auto" && choice !== null)
    throw refused("tool_choice", "must be auto or none: the agent chooses its tools");
  return (tools ?? []).map((tool, at) => {
    const { name, description, parameters } = tool.function ?? tool;
    if (tool.type !== "function" || name === undefined)
      throw refused(`tools.${at}`, "must be a function with a name: other tools are those of the agent");
    return {
      name,
      ...(description && { description }),
      ...(parameters && { input_schema: { ...parameters } }),
    };
  });
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
