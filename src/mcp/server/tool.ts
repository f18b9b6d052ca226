import type { CallToolResult, McpServer } from "@modelcontextprotocol/server";
import type { z } from "zod";
import { KitError } from "../../base/kit-error.ts";
import type { IndexingProgress } from "../../protocol/indexing.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";

/** A tool that only reads: its input and output as schemas, and the output as text for a model. */
export interface ReadTool<Input, Output extends object> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: z.ZodType<Input>;
  readonly output: z.ZodType<Output>;
  readonly run: (input: Input, signal: AbortSignal) => Output | Promise<Output>;
  readonly toText: (output: Output) => string;
  /** The specs and guidelines that the text shows: for the receipts of an agent's turns. */
  readonly shows?: (output: Output) => readonly ReceiptItem[];
}

export interface ToolOptions {
  /** Set while answers may lack what is not indexed yet. */
  readonly indexing?: (() => IndexingProgress | undefined) | undefined;
  /** Hears of failures that are kit's own and not the caller's. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** Adds a tool. What fails becomes a result that the model can read, never a broken call. */
export function addTool<Input, Output extends object>(
  server: McpServer,
  tool: ReadTool<Input, Output>,
  { onError, indexing }: ToolOptions,
): void {
  const { name, title, description, input: inputSchema, output: outputSchema } = tool;
  const annotations = { title, readOnlyHint: true, idempotentHint: true, openWorldHint: false };
  server.registerTool(
    name,
    { title, description, inputSchema, outputSchema, annotations },
    async (input: Input, context): Promise<CallToolResult> => {
      try {
        const output = await tool.run(input, context.mcpReq.signal);
        const { text, ...rest } = signed(tool.toText(output), indexing?.());
        return { content: [{ type: "text", text }], structuredContent: { ...output }, ...rest };
      } catch (error) {
        const { text, ...rest } = signed(messageOf(error, onError), indexing?.());
        return { content: [{ type: "text", text }], isError: true, ...rest };
      }
    },
  );
}

/** Says in the text and in `_meta` that the answer may lack what is not indexed yet. */
function signed(
  text: string,
  indexing: IndexingProgress | undefined,
): { readonly text: string; readonly _meta?: { readonly indexing: IndexingProgress } } {
  if (indexing === undefined) return { text };
  const { done, total } = indexing;
  const sign = `[The repository is still being indexed (${done} of ${total} files): this answer may be incomplete. Ask again in a moment.]`;
  return { text: `${text}\n\n${sign}`, _meta: { indexing } };
}

function messageOf(error: unknown, onError: ToolOptions["onError"]): string {
  if (error instanceof KitError) return error.message;
  onError?.(error);
  return "kit failed; its error output says more.";
}
