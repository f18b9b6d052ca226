import { KitError } from "../../base/kit-error.ts";
import { isStandardSchema, issueText } from "../../base/standard-schema.ts";
import type { EventBody } from "../../protocol/event.ts";
import type { ImagePart, TextPart, ToolCallPart, ToolResultPart } from "../../protocol/message.ts";
import type { ToolContext, ToolDefinition, ToolOutput } from "../tool.ts";

export interface ToolRunOptions {
  readonly tools: ReadonlyMap<string, ToolDefinition>;
  readonly operationId: string;
  readonly signal: AbortSignal;
  readonly emit: (body: EventBody) => void;
  /** Validates arguments against a JSON Schema; gives the issues, none when they are fine. */
  readonly validateJson: (
    schema: Readonly<Record<string, unknown>>,
    value: unknown,
  ) => readonly string[] | Promise<readonly string[]>;
  /** Sees every result before it is stored: masking, limits of the caller's own. */
  readonly onResult?: (call: ToolCallPart, result: ToolResultPart) => ToolResultPart;
}

export const defaultToolTimeoutMs = 120_000;
export const defaultMaxResultChars = 50_000;

/**
 * Runs the calls of one turn and gives a result for each, in their order, whatever happens.
 *
 * Calls run side by side, unless one of them is `exclusive`. Nothing a tool does throws from here:
 * bad arguments, failures, time-outs and aborts are results that the model reads.
 */
export async function runToolCalls(
  calls: readonly ToolCallPart[],
  options: ToolRunOptions,
): Promise<readonly ToolResultPart[]> {
  const oneByOne = calls.some((call) => options.tools.get(call.tool)?.exclusive === true);
  if (!oneByOne) return Promise.all(calls.map((call) => runToolCall(call, options)));
  const results: ToolResultPart[] = [];
  for (const call of calls) results.push(await runToolCall(call, options));
  return results;
}

async function runToolCall(call: ToolCallPart, options: ToolRunOptions): Promise<ToolResultPart> {
  options.emit({ type: "tool_start", tool_call_id: call.tool_call_id, tool: call.tool, args: call.args });
  const started = performance.now();
  const raw = await outcomeOf(call, options);
  const result = options.onResult?.(call, raw) ?? raw;
  options.emit({
    type: "tool_end",
    tool_call_id: call.tool_call_id,
    tool: call.tool,
    result: resultText(result),
    is_error: result.is_error,
    duration_ms: performance.now() - started,
  });
  return result;
}

async function outcomeOf(call: ToolCallPart, options: ToolRunOptions): Promise<ToolResultPart> {
  const tool = options.tools.get(call.tool);
  if (tool === undefined) {
    const names = [...options.tools.keys()].join(", ");
    return failure(
      call,
      `There is no tool named "${call.tool}". The tools are: ${names === "" ? "none" : names}.`,
    );
  }
  if (call.invalid === true)
    return failure(call, "The arguments are not valid JSON. Call the tool again with valid JSON.");
  const input = await validateInput(tool, call.args, options);
  if ("issues" in input)
    return failure(call, `The arguments are not what ${tool.name} takes: ${input.issues.join("; ")}.`);
  if (options.signal.aborted) return failure(call, "The call was aborted before it started.");
  return execute(tool, { call, input: input.value, options });
}

async function execute(
  tool: ToolDefinition,
  run: { readonly call: ToolCallPart; readonly input: unknown; readonly options: ToolRunOptions },
): Promise<ToolResultPart> {
  const { call, input, options } = run;
  const timeoutMs = tool.timeoutMs ?? defaultToolTimeoutMs;
  const controller = new AbortController();
  const context: ToolContext = {
    tool_call_id: call.tool_call_id,
    operation_id: options.operationId,
    signal: controller.signal,
    idempotency_key: `${options.operationId}:${call.tool_call_id}`,
  };
  let timer: NodeJS.Timeout | undefined;
  let onAbort: (() => void) | undefined;
  try {
    const work = tool.execute(input, context);
    if (!(work instanceof Promise)) return success(call, work, tool);
    // A tool that honours its signal ends by itself; one that does not is left behind, so that an
    // abort or a time limit holds whatever the tool does.
    const stopped = new Promise<never>((_, reject) => {
      const stop = (reason: unknown): void => {
        controller.abort(reason);
        reject(reason);
      };
      timer = setTimeout(() => stop(new ToolTimeout(timeoutMs)), timeoutMs);
      onAbort = () => stop(options.signal.reason);
      options.signal.addEventListener("abort", onAbort, { once: true });
      // The tool may have fired the abort itself, before anybody listened.
      if (options.signal.aborted) onAbort();
    });
    return success(call, await Promise.race([work, stopped]), tool);
  } catch (error) {
    if (options.signal.aborted)
      return failure(call, "The call was aborted; what it had done by then is unknown.", "unknown");
    if (error instanceof ToolTimeout)
      return failure(call, `${error.message} What it had done by then is unknown.`, "unknown");
    return failure(call, errorText(error));
  } finally {
    clearTimeout(timer);
    if (onAbort !== undefined) options.signal.removeEventListener("abort", onAbort);
  }
}

class ToolTimeout extends Error {
  constructor(timeoutMs: number) {
    super(`The tool did not finish within ${timeoutMs / 1000} seconds and was stopped.`);
  }
}

async function validateInput(
  tool: ToolDefinition,
  args: unknown,
  options: ToolRunOptions,
): Promise<{ readonly value: unknown } | { readonly issues: readonly string[] }> {
  if (isStandardSchema(tool.input)) {
    let result = tool.input["~standard"].validate(args);
    if (result instanceof Promise) result = await result;
    return result.issues === undefined ? { value: result.value } : { issues: result.issues.map(issueText) };
  }
  const issues = await options.validateJson(tool.input, args);
  return issues.length === 0 ? { value: args } : { issues };
}

function success(call: ToolCallPart, output: ToolOutput, tool: ToolDefinition): ToolResultPart {
  const limit = tool.maxResultChars ?? defaultMaxResultChars;
  const content = typeof output === "string" ? output : output.content;
  return {
    type: "tool_result",
    tool_call_id: call.tool_call_id,
    tool: call.tool,
    content:
      typeof content === "string" ? [{ type: "text", text: cut(content, limit) }] : cutParts(content, limit),
    is_error: typeof output === "string" ? false : output.isError === true,
    ...(typeof output === "string" || output.outcome === undefined ? {} : { outcome: output.outcome }),
  };
}

/** A result that tells the model what went wrong. */
export function failure(call: ToolCallPart, text: string, outcome?: "unknown"): ToolResultPart {
  return {
    type: "tool_result",
    tool_call_id: call.tool_call_id,
    tool: call.tool,
    content: [{ type: "text", text }],
    is_error: true,
    ...(outcome === undefined ? {} : { outcome }),
  };
}

function cutParts(
  parts: readonly (TextPart | ImagePart)[],
  limit: number,
): readonly (TextPart | ImagePart)[] {
  let left = limit;
  return parts.map((part) => {
    if (part.type !== "text") return part;
    const text = cut(part.text, Math.max(0, left));
    left -= part.text.length;
    return { ...part, text };
  });
}

// The beginning and the end of an output say most; the middle is what one can do without.
function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const head = Math.ceil(limit * 0.7);
  const tail = limit - head;
  const dropped = text.length - limit;
  return `${text.slice(0, head)}\n[… ${dropped} characters cut …]\n${tail > 0 ? text.slice(-tail) : ""}`;
}

function errorText(error: unknown): string {
  if (error instanceof KitError)
    return error.hint === undefined ? error.message : `${error.message} ${error.hint}`;
  return error instanceof Error ? error.message : String(error);
}

function resultText(result: ToolResultPart): string {
  let text = "";
  for (const part of result.content) text += part.type === "text" ? part.text : `[image ${part.media_type}]`;
  return text;
}
