import type { CallToolResult, McpServer } from "@modelcontextprotocol/server";
import type { z } from "zod";
import { KitError } from "../base/kit-error.ts";

/** A tool that only reads: its input and output as schemas, and the output as text for a model. */
export interface ReadTool<Input, Output extends object> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: z.ZodType<Input>;
  readonly output: z.ZodType<Output>;
  readonly run: (input: Input, signal: AbortSignal) => Output | Promise<Output>;
  readonly toText: (output: Output) => string;
}

export interface ToolOptions {
  /** Hears of failures that are kit's own and not the caller's. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** Adds a tool. What fails becomes a result that the model can read, never a broken call. */
export function addTool<Input, Output extends object>(
  server: McpServer,
  tool: ReadTool<Input, Output>,
  { onError }: ToolOptions,
): void {
  const { name, title, description, input: inputSchema, output: outputSchema } = tool;
  const annotations = { title, readOnlyHint: true, idempotentHint: true, openWorldHint: false };
  server.registerTool(
    name,
    { title, description, inputSchema, outputSchema, annotations },
    async (input: Input, context): Promise<CallToolResult> => {
      try {
        const output = await tool.run(input, context.mcpReq.signal);
        return {
          content: [{ type: "text", text: tool.toText(output) }],
          structuredContent: { ...output },
        };
      } catch (error) {
        return { content: [{ type: "text", text: messageOf(error, onError) }], isError: true };
      }
    },
  );
}

function messageOf(error: unknown, onError: ToolOptions["onError"]): string {
  if (error instanceof KitError) return error.message;
  onError?.(error);
  return "Something went wrong inside kit; its error output says more.";
}
