import type { AnyTool, ToolContext, ToolDefinition, ToolOutput } from "../../agents/define/tool.ts";
import { maskSecrets } from "../../agents/secrets.ts";
import type { StandardSchemaV1 } from "../../base/standard-schema.ts";
import type { McpOrigin } from "../../protocol/event.ts";
import { times } from "./limits.ts";
import type { ListedTool } from "./listed-tool.ts";
import { isPlainObject } from "./normalize-schema.ts";
import { ServerFailure } from "./server-failure.ts";
import type { ServerLink } from "./server-link.ts";
import { toToolOutput } from "./to-tool-output.ts";

/** Validates a value against a JSON Schema; gives the issues, none when it is fine. */
export type ValidateJson = (
  schema: Readonly<Record<string, unknown>>,
  value: unknown,
) => readonly string[] | Promise<readonly string[]>;

export type Arguments = Readonly<Record<string, unknown>>;

/** A server's tool as agents call it: `mcp__<server>__<tool>`. */
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

/** Where calls of a tool go, as events tell it. */
export function originOf({ name, settings }: ServerLink, tool: ListedTool): McpOrigin {
  return { server: name, tool: tool.name, transport: settings.endpoint.kind === "process" ? "pipe" : "tcp" };
}

/** The longest a call may take, with a connection that has to be made first. */
export function timeoutOf({ settings }: ServerLink): number {
  return settings.connectTimeoutMs + settings.callTimeoutMs + 2 * times.reconnectWait;
}

/** Calls a tool. What goes wrong is a result that says what happened, and whether it was done. */
export async function runServerTool(
  link: ServerLink,
  call: { readonly tool: ListedTool; readonly args: Arguments },
  { signal, trace }: Pick<ToolContext, "signal" | "trace">,
): Promise<ToolOutput> {
  const mask = (text: string): string => maskSecrets(text, link.settings.secrets);
  try {
    return toToolOutput(await link.call({ ...call, trace }, signal), mask);
  } catch (error) {
    if (!(error instanceof ServerFailure)) throw error;
    const what = `The MCP server "${link.name}" could not do it. ${mask(error.message)}`;
    return error.outcome === "unknown"
      ? {
          content: `${what} Whether the call was done is unknown: check before you repeat it.`,
          isError: true,
          outcome: "unknown",
        }
      : { content: `${what} The call was not done.`, isError: true };
  }
}

/** Issues of arguments by the tool's schema; none where only the server can tell. */
export async function issuesOf(
  tool: ListedTool,
  args: unknown,
  validateJson: ValidateJson,
): Promise<readonly string[]> {
  if (!isPlainObject(args)) return ["the arguments must be an object"];
  try {
    return await validateJson(tool.schema.checked, args);
  } catch {
    // A schema that the validator cannot follow is the server's to apply.
    return [];
  }
}

function inputOf(tool: ListedTool, validateJson: ValidateJson): StandardSchemaV1<unknown, Arguments> {
  return {
    "~standard": {
      version: 1,
      vendor: "kit",
      async validate(value) {
        const issues = await issuesOf(tool, value, validateJson);
        if (issues.length > 0) return { issues: issues.map((message) => ({ message })) };
        return { value: value as Arguments };
      },
      jsonSchema: { input: () => ({ ...tool.schema.shown }) },
    },
  };
}
