import type { LanguageModelV4 } from "@ai-sdk/provider";
import { digestOf } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import type { ResolvedModel } from "../../models/contract.ts";
import type { ThinkingLevel } from "../../protocol/enums.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { AgentRuntime, Harness, Operation, Toolkit, ToolSource } from "../agent-runtime.ts";
import type { AgentProfile, Role } from "../define/agent-profile.ts";
import type { AgentHooks } from "../define/hooks.ts";
import type { ModelSource, ProfileModel } from "../define/profile-settings.ts";
import type { ToolLookup } from "../define/tool.ts";
import { instructionsWithout } from "../log/left-out-rules.ts";
import type { ProjectInstructions, Repository } from "../project-context.ts";
import { type Surroundings, systemPromptOf } from "../prompt/system-prompt.ts";
import type { LoopPrompt, SystemPrompt } from "../prompt/turn-records.ts";
import { createSecretMask, maskValue, type SecretMask, secretsFor } from "../secrets.ts";
import type { ToolHooks, TurnHooks } from "../turn/hook-calls.ts";
import type { TurnLoop } from "../turn/loop-parts.ts";
import type { ModelFailure } from "../turn/retry.ts";
import { type TurnSettings, turnSettings } from "../turn/turn-settings.ts";
import type { PromptOptions } from "./options.ts";
import { extendToolkit } from "./toolkit.ts";

const none: readonly never[] = [];

/** The parts of an agent that a prompt uses. */
export type PromptHost = Pick<Harness, "name" | "file" | "run_id" | "runtime" | "store">;

/** Everything one operation works with, resolved from the profile, the role and the call's options. */
export interface Prepared extends Toolkit, TurnSettings {
  readonly models: Models;
  readonly thinkingLevel: ThinkingLevel | undefined;
  readonly prompt: OperationPrompt;
  /** Entries that report changes of the working place to the model. */
  readonly news: readonly SessionEntry[];
  readonly repository: Repository | undefined;
  /** Files whose text the system prompt contains. */
  readonly promptFiles: ReadonlySet<string>;
  /** Undefined for an agent without hooks. */
  readonly hooks:
    | { readonly ofTurns?: TurnHooks | undefined; readonly ofTools?: ToolHooks | undefined }
    | undefined;
}

/** Resolves model, tools and system prompt. The call's options win over the role, the role over the profile. */
export async function prepare(
  harness: PromptHost,
  operation: Operation,
  options: PromptOptions,
): Promise<Prepared> {
  const { live, signal } = operation;
  const { profile } = live;
  const { clock, project } = harness.runtime;
  const role = typeof options.role === "string" ? roleOf(profile, options.role) : options.role;
  const modelName = options.model ?? role?.model ?? profile.model ?? harness.runtime.defaultModel;
  if (options.secrets !== undefined) grant(operation, secretsFor(harness.runtime.env, options.secrets));
  const sources = profile.mcp === false ? none : (harness.runtime.toolSources ?? none);
  const sourced =
    sources.length === 0 ? none : (await Promise.all(sources.map((source) => source(operation)))).flat();
  const { specs, guidelines, projectInstructions, omitRules: leftOut } = profile;
  let repository: Repository | undefined;
  if (project !== undefined && (specs !== false || guidelines !== false || projectInstructions !== false)) {
    repository = project.repositoryAt(live.located() ?? (await live.workplace(signal)));
  }
  operation.repository = repository;
  const showsSpecs = repository !== undefined && specs !== false;
  const { tools: inOrder, isAvailable } = live.prompt.inOrder(sourced, operation.state);
  const ownTools = showsSpecs ? project?.tools : undefined;
  const repositoryTools = showsSpecs ? repository?.tools : undefined;
  const hasMore =
    (options.tools ?? options.commands ?? options.callerTools) !== undefined || inOrder.length > 0;
  const toolkit =
    !hasMore && ownTools === repositoryTools
      ? live.toolkit()
      : extendToolkit(
          live.toolkit(),
          { live, runtime: harness.runtime },
          {
            tools: options.tools,
            commands: options.commands,
            callerTools: options.callerTools,
            sourced: inOrder,
            isAvailable,
            whyMissing: whyMissingIn(sources),
            project: ownTools,
            repository: repositoryTools,
          },
        );
  const reading =
    repository !== undefined && projectInstructions !== false ? repository.instructions() : noInstructions;
  const found = reading instanceof Promise ? await reading : reading;
  const { omitRules = none } = options;
  let begun: readonly SessionEntry[] = none;
  if (omitRules.length > 0 || leftOut !== undefined) {
    const { beginWithout } = await import("./begin-without.ts");
    begun = await beginWithout(operation, omitRules, { repository, instructions: found, clock });
  }
  const { rulesLeftOut } = operation;
  const instructions = rulesLeftOut.size === 0 ? found : instructionsWithout(found, rulesLeftOut);
  const runsCommands = profile.allowShell === true || (profile.commands ?? none).length > 0;
  const surroundings: Surroundings = {
    instructions,
    commands: runsCommands ? await describeWall(harness.runtime, profile) : "",
    workingFolder: (showsSpecs ? repository?.workingFolder : undefined) ?? "",
    isIndexed: !showsSpecs || repositoryTools !== undefined,
  };
  const prompt = new OperationPrompt(harness, operation, { surroundings, role });
  const news = begun.length === 0 ? prompt.news : [...begun, ...prompt.news];
  const hooks = profile.hooks === undefined ? none : [profile.hooks].flat();
  return {
    tools: toolkit.tools,
    schemas: toolkit.schemas,
    models: await openModels(modelName, harness.runtime),
    ...turnSettings(profile.modelSettings, options, toolkit),
    thinkingLevel: options.thinkingLevel ?? role?.thinkingLevel ?? profile.thinkingLevel,
    prompt,
    news: operation.mask === undefined ? news : maskValue(news, operation.mask),
    repository,
    promptFiles: instructions.sources,
    hooks: hooks.length === 0 ? undefined : await hooksAt(operation, hooks),
  };
}

/** The system prompt of an operation. A class: functions would keep what prepared it as long as the operation runs. */
class OperationPrompt implements LoopPrompt {
  current: SystemPrompt;
  readonly records: LoopPrompt["records"];
  /** Entries that report changes of the working place to the model. */
  news: readonly SessionEntry[] = none;
  readonly #host: PromptHost;
  readonly #operation: Operation;
  readonly #from: { readonly surroundings: Surroundings; readonly role: Role | undefined };

  constructor(
    host: PromptHost,
    operation: Operation,
    from: { readonly surroundings: Surroundings; readonly role: Role | undefined },
  ) {
    this.#host = host;
    this.#operation = operation;
    this.#from = from;
    this.records = operation.live.prompt.records;
    this.current = this.renew();
  }

  /** Builds the system prompt, again after a compaction. */
  renew(): SystemPrompt {
    const { id: operationId, live, mask, state } = this.#operation;
    const { name, file, runtime } = this.#host;
    const { surroundings, role } = this.#from;
    const { prompt, profile } = live;
    const described = prompt.update(surroundings, { state, operationId, clock: runtime.clock });
    this.news = described.news;
    const agent = { name: profile.name ?? name, file };
    const built = systemPromptOf({ ...described.surroundings, profile, role, agent });
    this.current = mask === undefined ? built : masked(built, mask);
    return this.current;
  }
}

/** The hooks around the calls of an operation. Their code is loaded for an agent that has some. */
async function hooksAt(
  { id, live, signal, mask }: Operation,
  hooks: readonly AgentHooks[],
): Promise<NonNullable<Prepared["hooks"]>> {
  const { toolHooks, turnHooks } = await import("../turn/hook-calls.ts");
  const { agent, instance_id: instance, session } = live.key;
  const context = { hooks, at: { agent, instance, session, operationId: id, signal }, mask };
  return { ofTurns: turnHooks(context), ofTools: toolHooks(context) };
}

/** Describes the isolation and rights of an agent's commands. */
async function describeWall({ isolation, sandbox }: AgentRuntime, profile: AgentProfile): Promise<string> {
  const factory = profile.sandbox ?? sandbox;
  const stands = await factory.isolation?.(isolation === undefined ? {} : { isolation });
  if (stands === undefined || stands.wall === "none") return "";
  const files =
    profile.allowWrite === true
      ? "may change files of the workspace"
      : "may read the workspace and not change it";
  const hosts = profile.allowNetwork ?? [];
  return `${stands.description} They ${files}, and reach ${hosts.length === 0 ? "no host" : `only ${hosts.join(", ")}`}.`;
}

function whyMissingIn(sources: readonly ToolSource[]): ToolLookup["whyMissing"] {
  return (name) => sources.map((source) => source.whyMissing?.(name)).find((why) => why !== undefined);
}

const noInstructions: ProjectInstructions = { text: "", sources: new Set(), parts: [] };

/** Masks secrets in the prompt; a secret granted to this call then changes the prompt's digest. */
function masked(prompt: SystemPrompt, mask: SecretMask): SystemPrompt {
  const text = mask(prompt.text);
  return text === prompt.text
    ? prompt
    : { ...prompt, text, digests: { ...prompt.digests, secrets: digestOf(text) } };
}

/** Grants an operation the secrets that its call names; from now on they are masked, too. */
export function grant(operation: Operation, { env, values }: ReturnType<typeof secretsFor>): void {
  operation.secrets = env;
  if (values.length > 0) operation.mask = createSecretMask([...(operation.mask?.values ?? []), ...values]);
}

function roleOf({ roles = [] }: AgentProfile, requested: string): Role {
  const role = roles.find((role) => role.name === requested);
  if (role !== undefined) return role;
  const names = roles.map((role) => role.name).join(", ");
  throw new KitError({
    code: "invalid_request",
    message: `There is no role named "${requested}".`,
    hint: names === "" ? "Add one as .agents/roles/<name>.md." : `The roles are: ${names}.`,
  });
}

/** Milliseconds for which a failed model is skipped if its list names another one. */
const skipMs = 60_000;

/** When each failed model may be used again; shared by all sessions, since an application creates each model once. */
const skippedUntil = new WeakMap<LanguageModelV4, number>();

type ModelServices = Pick<AgentRuntime, "resolveModel" | "clock">;

/** The models that one operation may call: a single one, or several in their configured order. */
export type Models = ModelLine | { readonly current: ResolvedModel; readonly hasOthers: false };

/**
 * Resolves the first usable model that has not failed recently. Skips a model without a key or a package if another
 * one follows. Rejects with the first model's error if none is usable.
 */
export async function openModels(choice: ProfileModel, runtime: ModelServices): Promise<Models> {
  if (typeof choice === "string") return { current: await runtime.resolveModel(choice), hasOthers: false };
  const names = [...new Set([choice].flat())];
  const tried = new Set<ModelSource>();
  const current = await pickModel(names, tried, runtime);
  return names.length === 1
    ? { current, hasOthers: false }
    : new ModelLine(current, { names, tried, runtime });
}

/** Several models, in their configured order. */
class ModelLine {
  readonly #names: readonly ModelSource[];
  readonly #runtime: ModelServices;
  readonly #tried: Set<ModelSource>;
  /** The model in use. */
  current: ResolvedModel;
  readonly hasOthers = true;

  constructor(
    current: ResolvedModel,
    from: {
      readonly names: readonly ModelSource[];
      readonly tried: Set<ModelSource>;
      readonly runtime: ModelServices;
    },
  ) {
    this.current = current;
    this.#names = from.names;
    this.#tried = from.tried;
    this.#runtime = from.runtime;
  }

  /** Switches to the next model after a failure; false if none is left. Other operations skip the failed one, too. */
  async next({ retryAfterMs = 0 }: Pick<ModelFailure, "retryAfterMs">): Promise<boolean> {
    skippedUntil.set(this.current.model, this.#runtime.clock.now() + Math.max(skipMs, retryAfterMs));
    try {
      this.current = await pickModel(this.#names, this.#tried, this.#runtime);
      return true;
    } catch (error) {
      if (isUnusable(error)) return false;
      throw error;
    }
  }
}

/** The first usable model that was not tried; adds those that it resolves to `tried`. */
async function pickModel(
  names: readonly ModelSource[],
  tried: Set<ModelSource>,
  { resolveModel, clock }: ModelServices,
): Promise<ResolvedModel> {
  let reserve: { readonly name: ModelSource; readonly resolved: ResolvedModel } | undefined;
  let reason: unknown;
  for (const name of names) {
    if (tried.has(name)) continue;
    try {
      const resolved = typeof name === "string" ? await resolveModel(name) : ofProgram(name);
      if (names.length > 1 && (skippedUntil.get(resolved.model) ?? 0) > clock.now()) {
        reserve ??= { name, resolved };
        continue;
      }
      tried.add(name).add(resolved.name);
      return resolved;
    } catch (error) {
      if (!isUnusable(error)) throw error;
      tried.add(name);
      reason ??= error;
    }
  }
  if (reserve === undefined) throw reason ?? new NoModelLeft();
  // All remaining models have failed recently: use the first of them nevertheless.
  tried.add(reserve.name).add(reserve.resolved.name);
  return reserve.resolved;
}

/** A model that a program brings along: kit knows nothing of it, and asks for JSON in words. */
function ofProgram(model: LanguageModelV4): ResolvedModel {
  return { name: `${model.provider}/${model.modelId}`, model, structuredOutput: "never" };
}

class NoModelLeft extends Error {
  override readonly name = "NoModelLeft";
}

/** Whether a model only lacks its key or package, which does not invalidate the list that names it. */
function isUnusable(error: unknown): error is KitError | NoModelLeft {
  return error instanceof NoModelLeft || (error instanceof KitError && error.code === "unavailable");
}

/** The fallback to the models after the first one. */
export function fallbackOf(models: ModelLine): NonNullable<TurnLoop["fallback"]> {
  const { current: first } = models;
  return {
    current: ({ settings, tools }) =>
      models.current === first
        ? undefined
        : {
            resolved: models.current,
            settings: settingsFor(settings, models.current, tools.length > 0),
          },
    next: async (failure) => ((await models.next(failure)) ? models.current.name : undefined),
  };
}

/** The settings of turns for another model: the schema is enforced only if that model supports it. */
function settingsFor(
  { responseFormat, providerOptions, ...settings }: TurnLoop["settings"],
  { structuredOutput, looseSchemaOptions }: ResolvedModel,
  offersTools: boolean,
): TurnLoop["settings"] {
  const isHeld =
    structuredOutput === "always" ||
    (structuredOutput !== "never" && !offersTools) ||
    (structuredOutput === "without_calls" && settings.toolChoice?.type === "none");
  if (responseFormat === undefined || !isHeld) return settings;
  const isLoose = providerOptions !== undefined && looseSchemaOptions !== undefined;
  return { ...settings, responseFormat, ...(isLoose && { providerOptions: looseSchemaOptions }) };
}
