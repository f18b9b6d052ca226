import type { LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import { KitError } from "../../base/kit-error.ts";
import { textTokens } from "../../base/text-size.ts";
import type { CallerTool } from "../../protocol/prompt.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import type { TraceContext } from "../../protocol/tracing.ts";
import type { PythonSession } from "../../python/contract.ts";
import type { AgentRuntime, Harness, LiveSession, Toolkit } from "../agent-runtime.ts";
import { checkCallerTools, nameClash, toCallerTools } from "../approvals/call-kinds.ts";
import type { AgentProfile } from "../define/agent-profile.ts";
import { builtInToolNames, offersBuiltIn } from "../define/profile-settings.ts";
import type { AnyTool, KitCommand, ToolDefinition, ToolLookup } from "../define/tool.ts";
import { inputSchemaOf } from "../output/typed-output.ts";
import { skillItem } from "../prompt/system-prompt.ts";
import { createBuiltInTools, createTaskTool, type StartTask } from "../tools/built-in-tools.ts";
import { commandTools } from "../tools/command-tool.ts";
import type { ToolEnvironment } from "../tools/tool-environment.ts";
import { createPythonTool, pythonToolName } from "./run-python.ts";

/** The parts of an agent that its tools use. */
type ToolHost = Pick<Harness, "startTask" | "python" | "runtime">;

/** The part of a toolkit that all sessions of an agent share. */
interface ToolCatalogue {
  readonly runtime: AgentRuntime;
  /** The tools of the profile and the project; built-in tools belong to each session. */
  readonly sharedTools: ReadonlyMap<string, ToolDefinition>;
  readonly schemas: readonly LanguageModelV4FunctionTool[];
}

const catalogues = new WeakMap<AgentProfile, ToolCatalogue>();

/** The tool catalogue of a profile, created once for all its sessions. */
function catalogueOf(profile: AgentProfile, runtime: AgentRuntime): ToolCatalogue {
  let catalogue = catalogues.get(profile);
  if (catalogue?.runtime !== runtime) {
    catalogue = createCatalogue(profile, runtime);
    catalogues.set(profile, catalogue);
  }
  return catalogue;
}

function createCatalogue(profile: AgentProfile, runtime: AgentRuntime): ToolCatalogue {
  const sharedTools = new Map<string, ToolDefinition>();
  if (profile.specs !== false) addTools(sharedTools, runtime.project?.tools ?? []);
  addTools(sharedTools, withCheckedNames(profile.tools ?? [], profile));
  const all = new Map<string, ToolDefinition>();
  // Only names and schemas are read here; there is no session to run the tools in.
  const python = runtime.python === undefined ? undefined : unreachable;
  addTools(
    all,
    sessionTools({
      profile,
      environment: nowhere(profile),
      startTask: unreachable,
      python,
      builtIn: builtInOf(profile),
    }),
  );
  // A command replaces a tool of the same name.
  for (const name of sharedTools.keys()) if (all.has(name)) sharedTools.delete(name);
  return { runtime, sharedTools, schemas: schemasOf([...all.values(), ...sharedTools.values()]) };
}

/** The tools of a session. Those that use the sandbox are created when the model first calls one. */
export class SessionToolkit implements Toolkit, ToolLookup {
  readonly tools: ToolLookup = this;
  readonly schemas: Toolkit["schemas"];
  readonly #harness: ToolHost;
  readonly #live: LiveSession;
  readonly #catalogue: ToolCatalogue;
  #bound: Map<string, ToolDefinition> | undefined;

  constructor(harness: ToolHost, live: LiveSession) {
    this.#harness = harness;
    this.#live = live;
    this.#catalogue = catalogueOf(live.profile, harness.runtime);
    this.schemas = this.#catalogue.schemas;
  }

  get(name: string): ToolDefinition | undefined {
    const tool = this.#catalogue.sharedTools.get(name);
    if (tool !== undefined) return tool;
    this.#bound ??= this.#bind();
    return this.#bound.get(name);
  }

  names(): readonly string[] {
    return this.schemas.map((schema) => schema.name);
  }

  #bind(): Map<string, ToolDefinition> {
    const harness = this.#harness;
    const live = this.#live;
    const environment = environmentOf(live, harness.runtime);
    const tools = new Map<string, ToolDefinition>();
    const startTask: StartTask = async (text, { key, call, ...options }) =>
      startTaskOf(harness, live, { text, key, call, options });
    const python = harness.runtime.python === undefined ? undefined : () => harness.python(live.key.session);
    addTools(tools, sessionTools({ profile: live.profile, environment, startTask, python }));
    return tools;
  }
}

/**
 * Extends a toolkit with the tools of one call and of tool sources. If the session works in another repository than
 * its agent's `project`, that repository's tools replace the project's.
 */
export function extendToolkit(
  base: Toolkit,
  { live, runtime }: { readonly live: LiveSession; readonly runtime: AgentRuntime },
  extra: {
    readonly project?: readonly AnyTool[] | undefined;
    readonly repository?: readonly AnyTool[] | undefined;
    readonly tools?: readonly AnyTool[] | undefined;
    readonly commands?: readonly KitCommand[] | undefined;
    /** Tools of the caller: one with the name of another tool is refused. */
    readonly callerTools?: readonly CallerTool[] | undefined;
    readonly sourced: readonly AnyTool[];
    /** False for a sourced tool that stays in the list although its source is unavailable now. */
    readonly isAvailable: (name: string) => boolean;
    readonly whyMissing?: ToolLookup["whyMissing"];
  },
): Toolkit {
  const toolkit = extra.project === extra.repository ? base : withRepository(base, extra);
  const commands =
    extra.commands === undefined ? [] : commandTools(extra.commands, environmentOf(live, runtime));
  const callTools: AnyTool[] = [...(extra.tools ?? []), ...commands];
  const { callerTools = [] } = extra;
  if (callerTools.length > 0) {
    checkCallerTools(callerTools);
    const taken = new Set([
      ...toolkit.tools.names(),
      ...[...callTools, ...extra.sourced].map(({ name }) => name),
    ]);
    const clash = callerTools.find(({ name }) => taken.has(name));
    if (clash !== undefined) throw nameClash(clash.name);
    callTools.push(...toCallerTools(callerTools));
  }
  if (callTools.length === 0 && extra.sourced.length === 0) return toolkit;
  const added = new Map<string, ToolDefinition>();
  const takenNames = new Set(toolkit.schemas.map((schema) => schema.name));
  // Tools of sources never replace the agent's own tools.
  const sourced = extra.sourced.filter((tool) => !takenNames.has(tool.name));
  addTools(added, sourced);
  const unavailable = new Set(sourced.flatMap(({ name }) => (extra.isAvailable(name) ? [] : [name])));
  addTools(added, withCheckedNames(callTools, live.profile));
  const remaining = toolkit.schemas.filter((schema) => !added.has(schema.name));
  const schemas = [...remaining, ...schemasOf(added.values())];
  for (const { name } of callTools) unavailable.delete(name);
  const tools: ToolLookup = {
    get: (name) => (unavailable.has(name) ? undefined : (added.get(name) ?? toolkit.tools.get(name))),
    names: () => schemas.flatMap(({ name }) => (unavailable.has(name) ? [] : [name])),
    ...(extra.whyMissing !== undefined && { whyMissing: extra.whyMissing }),
  };
  return { tools, schemas };
}

function withRepository(
  { tools, schemas }: Toolkit,
  { project = [], repository = [] }: Pick<Parameters<typeof extendToolkit>[2], "project" | "repository">,
): Toolkit {
  const replaced = new Map<string, ToolDefinition | undefined>();
  for (const { name } of project as readonly ToolDefinition[]) replaced.set(name, undefined);
  addTools(replaced as Map<string, ToolDefinition>, repository);
  // The agent's own tool of the same name stays.
  for (const tool of project as readonly ToolDefinition[])
    if (tools.get(tool.name) !== tool) replaced.delete(tool.name);
  const remaining = schemas.filter(({ name }) => !replaced.has(name) || replaced.get(name) !== undefined);
  return {
    schemas: remaining,
    tools: {
      get: (name) => (replaced.has(name) ? replaced.get(name) : tools.get(name)),
      names: () => remaining.map(({ name }) => name),
    },
  };
}

/** The tools that need a session to work in: files, search, commands, Python, tasks. */
function sessionTools(session: {
  readonly profile: AgentProfile;
  readonly environment: ToolEnvironment;
  readonly startTask: StartTask;
  readonly python: (() => PythonSession) | undefined;
  readonly builtIn?: readonly AnyTool[];
}): readonly AnyTool[] {
  const { profile, environment, startTask, python, builtIn } = session;
  return [
    ...(builtIn ?? createBuiltInTools(environment)),
    ...(hasPython(profile) && python !== undefined ? [createPythonTool(profile, python)] : []),
    ...(offersBuiltIn(profile.builtInTools, "task") ? [createTaskTool(startTask)] : []),
    ...withCheckedNames(commandTools(profile.commands ?? [], environment), profile),
  ];
}

/** Built-in tools of catalogues, keyed by the policy that decides names and descriptions; instances share them. */
const builtInTools = new Map<string, readonly AnyTool[]>();
const maxBuiltIn = 100;

function builtInOf(profile: AgentProfile): readonly AnyTool[] {
  const { allowWrite, allowShell, allowedCommands, allowCompoundCommands, builtInTools: offered } = profile;
  const key = JSON.stringify([allowWrite, allowShell, allowedCommands, allowCompoundCommands, offered]);
  let tools = builtInTools.get(key);
  if (tools === undefined) {
    tools = createBuiltInTools(nowhere(profile));
    if (builtInTools.size >= maxBuiltIn) builtInTools.clear();
    builtInTools.set(key, tools);
  }
  return tools;
}

function startTaskOf(
  harness: ToolHost,
  live: LiveSession,
  task: Parameters<Harness["startTask"]>[1],
): ReturnType<StartTask> {
  const operation = live.current;
  // A tool runs within an operation of its session.
  if (operation === undefined) throw new Error("The operation has ended.");
  return harness.startTask(operation, task);
}

/** The environment of a session's tools: they belong to the one operation that runs. */
function environmentOf(live: LiveSession, runtime: AgentRuntime): ToolEnvironment {
  const { projectRoot, sources, approvals, tracesCommands } = runtime;
  return {
    projectRoot,
    sources,
    writer: (tool) => ({ ...live.key, tool }),
    canAskPerson: approvals !== undefined && live.profile.approvals !== undefined,
    sandbox: () => live.sandbox(),
    policy: live.profile,
    envOf({ turnId, toolCallId }) {
      const { secrets = {}, tracing } = live.current ?? {};
      const call = { turn_id: turnId, tool_call_id: toolCallId };
      const trace = tracesCommands === true ? tracing?.headers(call) : undefined;
      return trace === undefined ? secrets : { ...secrets, ...toVariables(trace) };
    },
    emit: (body) => live.current?.emit(body),
    sourceAt: (path, text) => sourceAt(live, { path, text }),
  };
}

/** The receipt item of a file that is a skill, spec or guideline. */
async function sourceAt(
  { profile, current }: LiveSession,
  read: { readonly path: string; readonly text: string },
): Promise<readonly ReceiptItem[]> {
  const skill = profile.skills?.find(({ file }) => file === read.path);
  if (skill !== undefined) return [skillItem(skill, "read", read.text)];
  // The model has read the file even if its lookup fails.
  const source = await current?.repository?.sourceAt(read.path).catch(() => undefined);
  if (source === undefined) return [];
  const { kind, file } = source;
  return [{ kind, id: file, file, line: 1, why: "read", tokens: textTokens(read.text) }];
}

/** The trace context under the environment names that programs read. */
function toVariables({ traceparent, tracestate }: TraceContext): Readonly<Record<string, string>> {
  return { TRACEPARENT: traceparent, ...(tracestate === undefined ? {} : { TRACESTATE: tracestate }) };
}

function nowhere(policy: AgentProfile): ToolEnvironment {
  return {
    sandbox: unreachable,
    policy,
    envOf: () => ({}),
    emit: () => undefined,
    writer: unreachable,
    canAskPerson: false,
  };
}

function unreachable(): never {
  throw new Error("A tool of a catalogue is not run.");
}

function addTools(tools: Map<string, ToolDefinition>, added: readonly AnyTool[]): void {
  for (const tool of added) tools.set(tool.name, tool as ToolDefinition);
}

function hasPython(profile: AgentProfile): boolean {
  return profile.python !== undefined && profile.python !== false;
}

function withCheckedNames(tools: readonly AnyTool[], profile: AgentProfile): readonly AnyTool[] {
  for (const tool of tools) {
    const isTaken = builtInToolNames.has(tool.name) || (tool.name === pythonToolName && hasPython(profile));
    if (!isTaken) continue;
    throw new KitError({
      code: "invalid_request",
      message: `"${tool.name}" is the name of a built-in tool.`,
      hint: "Give your tool or command another name.",
    });
  }
  return tools;
}

/** The schemas of tools by their input, so that tools which are created for each session share theirs. */
const schemas = new WeakMap<object, LanguageModelV4FunctionTool[]>();
/** The lists of schemas by their first one: digests and texts of a list are made once for all agents with the same tools. */
const schemaLists = new WeakMap<LanguageModelV4FunctionTool, (readonly LanguageModelV4FunctionTool[])[]>();
/** How many schemas of an input, or lists with a first schema, are shared. */
const mostShared = 16;

function schemasOf(tools: Iterable<ToolDefinition>): readonly LanguageModelV4FunctionTool[] {
  const list = Array.from(tools, schemaOf);
  const [first] = list;
  if (first === undefined) return list;
  return shared(schemaLists, first, {
    isWanted: (other) =>
      other.length === list.length && other.every((schema, index) => schema === list[index]),
    create: () => list,
  });
}

function schemaOf({ name, description, input }: ToolDefinition): LanguageModelV4FunctionTool {
  return shared(schemas, input, {
    isWanted: (schema) => schema.name === name && schema.description === description,
    create: () => ({
      type: "function",
      name,
      description,
      inputSchema: inputSchemaOf(name, input) as LanguageModelV4FunctionTool["inputSchema"],
    }),
  });
}

/** Returns the value of a key that is as wanted; creates it if there is none. */
function shared<Key extends object, Value>(
  values: WeakMap<Key, Value[]>,
  key: Key,
  { isWanted, create }: { readonly isWanted: (value: Value) => boolean; readonly create: () => Value },
): Value {
  const known = values.get(key) ?? [];
  let value = known.find(isWanted);
  if (value !== undefined) return value;
  value = create();
  if (known.length < mostShared) values.set(key, [...known, value]);
  return value;
}
