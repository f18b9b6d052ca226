import type {
  CallToolResult,
  InputRequiredResult,
  McpServer,
  ServerContext,
  Tool,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { KitError } from "../../base/kit-error.ts";
import type { IndexingProgress } from "../../protocol/indexing.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";

/** How far a call is. `progress` only grows. */
export interface ToolProgress {
  readonly progress: number;
  /** Absent where the end is not known. */
  readonly total?: number;
  readonly message: string;
}

/** A tool that changes no file of the project: schemas of its input and output, and the output as text for a model. */
export interface ReadTool<Input, Output extends object> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: z.ZodType<Input>;
  readonly output: z.ZodType<Output>;
  /** Whether a call runs the project's tests, so that a client may ask a person first. */
  readonly runsTests?: true;
  readonly run: (
    input: Input,
    signal: AbortSignal,
    report?: (progress: ToolProgress) => void,
  ) => Output | Promise<Output>;
  readonly toText: (output: Output) => string;
  /** Lists the specs and guidelines in the text, for the receipts of an agent's turns. */
  readonly shows?: (output: Output) => readonly ReceiptItem[];
}

export interface ToolOptions {
  /** Returns the progress while answers may be incomplete because indexing has not finished. */
  readonly indexing?: (() => IndexingProgress | undefined) | undefined;
  /** Called with internal errors, not with errors of the caller. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** Adds a tool. Errors become results that the model can read. */
export function addTool<Input, Output extends object>(
  server: McpServer,
  tool: ReadTool<Input, Output>,
  options: ToolOptions,
): void {
  const { name, title, description, input: inputSchema, output: outputSchema } = tool;
  server.registerTool(
    name,
    { title, description, inputSchema, outputSchema, annotations: annotationsOf(tool) },
    (input: Input, context) => callTool(tool, input, { ...options, context }),
  );
}

/** A tool whose definition is converted once, and that many servers list and call. */
export interface ServedTool {
  readonly definition: Tool;
  /** Checks the arguments and calls the tool. Errors become results that the model can read. */
  call(
    args: Readonly<Record<string, unknown>>,
    context: ServerContext,
  ): Promise<CallToolResult | InputRequiredResult>;
}

/** Converts a tool for servers that live as long as one request. */
export function toServedTool<Input, Output extends object>(
  tool: ReadTool<Input, Output>,
  options: ToolOptions,
): ServedTool {
  const { name, title, description } = tool;
  return {
    definition: {
      ...{ name, title, description, annotations: annotationsOf(tool) },
      inputSchema: toInputSchema(tool.input),
      outputSchema: z.toJSONSchema(tool.output) as NonNullable<Tool["outputSchema"]>,
    },
    async call(args, context) {
      const input = tool.input.safeParse(args);
      return input.success
        ? await callTool(tool, input.data, { ...options, context })
        : toErrorResult(`The arguments are not valid: ${z.prettifyError(input.error)}`);
    },
  };
}

/** Converts the schema of an input, which is an object. */
export function toInputSchema(schema: z.ZodType): Tool["inputSchema"] {
  return z.toJSONSchema(schema, { io: "input" }) as Tool["inputSchema"];
}

/** A failure as a result that a model reads. */
export function toErrorResult(text: string): CallToolResult {
  return { content: [{ type: "text", text }], isError: true };
}

function annotationsOf({ title, runsTests }: Pick<ReadTool<never, object>, "title" | "runsTests">) {
  const readOnlyHint = runsTests !== true;
  return {
    ...{ title, readOnlyHint, idempotentHint: true, openWorldHint: false },
    ...(readOnlyHint ? {} : { destructiveHint: false }),
  };
}

async function callTool<Input, Output extends object>(
  tool: ReadTool<Input, Output>,
  input: Input,
  { onError, indexing, context }: ToolOptions & { readonly context: ServerContext },
): Promise<CallToolResult> {
  const { signal } = context.mcpReq;
  try {
    const output = await tool.run(input, signal, reporterOf(context));
    const { text, ...rest } = withProgress(tool.toText(output), indexing?.());
    return { content: [{ type: "text", text }], structuredContent: { ...output }, ...rest };
  } catch (error) {
    const { text, ...rest } = withProgress(
      toolErrorText(error, signal.aborted ? undefined : onError),
      indexing?.(),
    );
    return { ...toErrorResult(text), ...rest };
  }
}

/** Sends progress to a client that has asked for it. */
export function reporterOf({ mcpReq }: ServerContext): (progress: ToolProgress) => void {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return () => undefined;
  return (progress) => {
    const params = { progressToken, ...progress };
    // A client that has disconnected needs no progress.
    mcpReq.notify({ method: "notifications/progress", params }).catch(() => undefined);
  };
}

/** While indexing runs, adds to the text and to `_meta` that the answer may be incomplete. */
function withProgress(
  text: string,
  indexing: IndexingProgress | undefined,
): { readonly text: string; readonly _meta?: { readonly indexing: IndexingProgress } } {
  if (indexing === undefined) return { text };
  const { done, total } = indexing;
  const note = `[The repository is still being indexed (${done} of ${total} files): this answer may be incomplete. Ask again in a moment.]`;
  return { text: `${text}\n\n${note}`, _meta: { indexing } };
}

/** The text of a failure for a model; reports internal errors. */
export function toolErrorText(error: unknown, onError: ToolOptions["onError"]): string {
  if (error instanceof KitError) return error.message;
  onError?.(error);
  return "kit failed with an internal error. See its error output.";
}
