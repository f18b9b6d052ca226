import type { LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import { KitError } from "../../base/kit-error.ts";
import type { Harness, LiveSession, Toolkit } from "../agent-runtime.ts";
import type { KitCommand } from "../command.ts";
import { commandTools } from "../command-tools.ts";
import { inputSchemaOf } from "../output/json-schema-of.ts";
import type { AnyTool, ToolDefinition } from "../tool.ts";
import { builtInToolNames, createBuiltInTools } from "../tools/built-in-tools.ts";
import type { ToolEnvironment } from "../tools/tool-environment.ts";
import { createTaskTool } from "./task-tool.ts";

/** The tools of a session, from its profile and the project: built once, however often it is prompted. */
export function createToolkit(harness: Harness, live: LiveSession): Toolkit {
  const { profile } = live;
  const environment = environmentOf(live);
  const tools = new Map<string, ToolDefinition>();
  for (const tool of createBuiltInTools(environment)) tools.set(tool.name, tool as ToolDefinition);
  const task = createTaskTool(harness, live);
  tools.set(task.name, task as ToolDefinition);
  if (profile.specs !== false) {
    for (const tool of harness.runtime.project?.tools ?? []) tools.set(tool.name, tool as ToolDefinition);
  }
  addOwn(tools, [...(profile.tools ?? []), ...commandTools(profile.commands ?? [], environment)]);
  return { tools, schemas: schemasOf(tools) };
}

/** A toolkit with the tools that one call adds, and those that others have for it now. */
export function extendToolkit(
  toolkit: Toolkit,
  live: LiveSession,
  extra: {
    readonly tools?: readonly AnyTool[] | undefined;
    readonly commands?: readonly KitCommand[] | undefined;
    readonly sourced: readonly AnyTool[];
  },
): Toolkit {
  const own = [...(extra.tools ?? []), ...commandTools(extra.commands ?? [], environmentOf(live))];
  if (own.length === 0 && extra.sourced.length === 0) return toolkit;
  const tools = new Map(toolkit.tools);
  // Strangers do not take the place of what the agent has.
  for (const tool of extra.sourced) {
    if (!tools.has(tool.name)) tools.set(tool.name, tool as ToolDefinition);
  }
  addOwn(tools, own);
  return { tools, schemas: schemasOf(tools) };
}

/** What tools work with: one operation runs at a time, so the running one is theirs. */
function environmentOf(live: LiveSession): ToolEnvironment {
  return {
    sandbox: () => live.sandbox(),
    policy: live.profile,
    get env() {
      return live.current?.secrets ?? {};
    },
    emit: (body) => live.current?.emit(body),
  };
}

function addOwn(tools: Map<string, ToolDefinition>, own: readonly AnyTool[]): void {
  for (const tool of own) {
    if (builtInToolNames.has(tool.name)) {
      throw new KitError({
        code: "invalid_request",
        message: `"${tool.name}" is the name of a built-in tool.`,
        hint: "Give your tool or command another name.",
      });
    }
    tools.set(tool.name, tool as ToolDefinition);
  }
}

// A tool's JSON Schema is derived once, in however many sessions it is used.
const schemas = new WeakMap<ToolDefinition, LanguageModelV4FunctionTool>();

function schemasOf(tools: ReadonlyMap<string, ToolDefinition>): readonly LanguageModelV4FunctionTool[] {
  const list: LanguageModelV4FunctionTool[] = [];
  for (const tool of tools.values()) {
    let schema = schemas.get(tool);
    if (schema === undefined) {
      schema = {
        type: "function",
        name: tool.name,
        description: tool.description,
        inputSchema: inputSchemaOf(tool.name, tool.input) as LanguageModelV4FunctionTool["inputSchema"],
      };
      schemas.set(tool, schema);
    }
    list.push(schema);
  }
  return list;
}
