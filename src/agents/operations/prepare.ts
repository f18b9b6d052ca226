import type { LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import { KitError } from "../../base/kit-error.ts";
import type { ResolvedModel } from "../../models/contract.ts";
import type { Sandbox } from "../../sandboxes/contract.ts";
import type { ThinkingLevel } from "../agent-profile.ts";
import { commandTools } from "../command-tools.ts";
import type { Harness } from "../harness.ts";
import { inputSchemaOf } from "../output/json-schema-of.ts";
import type { Role } from "../role.ts";
import { maskSecrets, secretsFor } from "../secrets.ts";
import type { Operation } from "../session/live-session.ts";
import { composeSystemPrompt } from "../system-prompt.ts";
import type { AnyTool, ToolDefinition } from "../tool.ts";
import { builtInToolNames, createBuiltInTools } from "../tools/built-in-tools.ts";
import type { PromptOptions } from "./prompt-options.ts";
import { createTaskTool } from "./task-tool.ts";

/** What one operation works with, resolved from the profile, the role and the call's options. */
export interface Prepared {
  readonly resolved: ResolvedModel;
  readonly thinkingLevel: ThinkingLevel | undefined;
  readonly system: string;
  readonly tools: ReadonlyMap<string, ToolDefinition>;
  readonly toolSchemas: readonly LanguageModelV4FunctionTool[];
  /** Takes secret values out of a text. */
  readonly mask: (text: string) => string;
}

/** Resolves model, tools and system prompt. What the call says wins over the role, the role over the profile. */
export async function prepare(
  harness: Harness,
  operation: Operation,
  options: PromptOptions,
): Promise<Prepared> {
  const { profile } = operation.live;
  const role = roleOf(operation, options.role);
  const modelName = options.model ?? role?.model ?? profile.model ?? harness.runtime.defaultModel;
  const secrets = secretsFor(harness.runtime.env, options.secrets ?? []);
  const tools = toolsOf(harness, operation, { options, secrets: secrets.env });
  const [resolved, instructions] = await Promise.all([
    harness.runtime.resolveModel(modelName),
    profile.projectInstructions === false
      ? ""
      : (harness.runtime.project?.instructions(profile.cwd ?? "") ?? ""),
  ]);
  return {
    resolved,
    thinkingLevel: options.thinkingLevel ?? role?.thinkingLevel ?? profile.thinkingLevel,
    system: composeSystemPrompt({ profile, role, projectInstructions: instructions }),
    tools,
    toolSchemas: schemasOf(tools),
    mask: (text) => maskSecrets(text, secrets.values),
  };
}

function roleOf(operation: Operation, wanted: PromptOptions["role"]): Role | undefined {
  if (wanted === undefined || typeof wanted === "object") return wanted;
  const roles = operation.live.profile.roles ?? [];
  const found = roles.find((role) => role.name === wanted);
  if (found !== undefined) return found;
  const names = roles.map((role) => role.name).join(", ");
  throw new KitError({
    code: "invalid_request",
    message: `There is no role named "${wanted}".`,
    hint: names === "" ? "Add one as .agents/roles/<name>.md." : `The roles are: ${names}.`,
  });
}

function toolsOf(
  harness: Harness,
  operation: Operation,
  call: { readonly options: PromptOptions; readonly secrets: Readonly<Record<string, string>> },
): ReadonlyMap<string, ToolDefinition> {
  const { profile } = operation.live;
  const sandbox = (): Promise<Sandbox> => operation.live.sandbox();
  const tools = new Map<string, ToolDefinition>();
  const add = (tool: AnyTool): void => {
    tools.set(tool.name, tool as ToolDefinition);
  };
  const context = { sandbox, policy: profile, env: call.secrets, emit: operation.emit };
  for (const tool of createBuiltInTools(context)) add(tool);
  add(createTaskTool(harness, operation));
  if (profile.specs !== false) for (const tool of harness.runtime.project?.tools ?? []) add(tool);
  const own = [
    ...(profile.tools ?? []),
    ...(call.options.tools ?? []),
    ...commandTools([...(profile.commands ?? []), ...(call.options.commands ?? [])], context),
  ];
  for (const tool of own) {
    if (builtInToolNames.has(tool.name)) {
      throw new KitError({
        code: "invalid_request",
        message: `"${tool.name}" is the name of a built-in tool.`,
        hint: "Give your tool or command another name.",
      });
    }
    add(tool);
  }
  return tools;
}

// A tool's JSON Schema is derived once, however often its agent is prompted.
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
