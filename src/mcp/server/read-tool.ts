import type { CallToolResult, McpServer, ServerContext } from "@modelcontextprotocol/server";
import type { z } from "zod";
import { KitError } from "../../base/kit-error.ts";
import type { IndexingProgress } from "../../protocol/indexing.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";

/** How far a call is. `progress` only grows. */
export interface ToolProgress {
  readonly progress: number;
  readonly total: number;
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
  { onError, indexing }: ToolOptions,
): void {
  const { name, title, description, input: inputSchema, output: outputSchema } = tool;
  const readOnlyHint = tool.runsTests !== true;
  const annotations = {
    ...{ title, readOnlyHint, idempotentHint: true, openWorldHint: false },
    ...(readOnlyHint ? {} : { destructiveHint: false }),
  };
  server.registerTool(
    name,
    { title, description, inputSchema, outputSchema, annotations },
    async (input: Input, context): Promise<CallToolResult> => {
      const { signal } = context.mcpReq;
      try {
        const output = await tool.run(input, signal, reporterOf(context));
        const { text, ...rest } = withProgress(tool.toText(output), indexing?.());
        return { content: [{ type: "text", text }], structuredContent: { ...output }, ...rest };
      } catch (error) {
        const { text, ...rest } = withProgress(
          messageOf(error, signal.aborted ? undefined : onError),
          indexing?.(),
        );
        return { content: [{ type: "text", text }], isError: true, ...rest };
      }
    },
  );
}

/** Sends progress to a client that has asked for it. */
function reporterOf({ mcpReq }: ServerContext): (progress: ToolProgress) => void {
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

function messageOf(error: unknown, onError: ToolOptions["onError"]): string {
  if (error instanceof KitError) return error.message;
  onError?.(error);
  return "kit failed with an internal error. See its error output.";
}
