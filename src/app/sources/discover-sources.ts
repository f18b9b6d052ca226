import { realpathSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type AgentDefinition, isAgentDefinition } from "../../agents/define/create-agent.ts";
import { suggest, toSentence } from "../../base/error-text.ts";
import { faultOfDefinedName, nameKey, quoteName } from "../../base/names.ts";
import { defined, isRecord } from "../../base/record.ts";
import { faultOf, flag, object } from "../../base/settings.ts";
import { type FoundFiles, findFiles } from "../../files/find-files.ts";
import { isReservedName } from "../../protocol/built-in-workflows.ts";
import type { WebhookDefinition } from "../../webhooks/define-webhook.ts";
import {
  faultOfWorkflow,
  isWorkflowDefinition,
  type WorkflowDefinition,
  type WorkflowSchedule,
} from "../../workflows/define-workflow.ts";
import type { WorkflowSchema } from "../../workflows/workflow-context.ts";
import { isHeld } from "./agent-writes.ts";
import { faultOfProfile } from "./check-profile.ts";
import { describeFailure, failureLine, withLine } from "./describe-failure.ts";

/** A file that defines an agent, a workflow or a webhook. */
export interface SourceFile {
  readonly kind: "agent" | "workflow" | "webhook";
  /** Path below its folder without extension, folders joined by dots: `team.reviewer`. */
  readonly name: string;
  /** Project-relative. */
  readonly path: string;
}

export interface SourceProblem {
  readonly path: string;
  readonly message: string;
  /** Set if the file would define an agent, a workflow or a webhook of that name. */
  readonly source?: Pick<SourceFile, "kind" | "name">;
  /** A model has written the file, or one that it imports, and no person has accepted it. */
  readonly isHeld?: boolean;
  /** The problem stops no work: kit uses the file anyway, or another file of the same name. */
  readonly isHarmless?: boolean;
}

interface Layout {
  readonly kind: SourceFile["kind"];
  readonly folder: string;
  /** False for a folder that also has other content (`.agents/skills`). */
  readonly nested: boolean;
}

// If two files have one name, the file of the first layout wins.
const layouts: readonly Layout[] = [
  { kind: "agent", folder: "src/agents", nested: true },
  { kind: "agent", folder: "agents", nested: true },
  { kind: "agent", folder: ".agents", nested: false },
  { kind: "agent", folder: ".agents/agents", nested: true },
  { kind: "agent", folder: ".kit/agents", nested: true },
  { kind: "workflow", folder: "src/workflows", nested: true },
  { kind: "workflow", folder: "workflows", nested: true },
  { kind: "workflow", folder: ".agents/workflows", nested: true },
  { kind: "workflow", folder: ".kit/workflows", nested: true },
  { kind: "webhook", folder: "src/webhooks", nested: true },
  { kind: "webhook", folder: ".kit/webhooks", nested: true },
];

const extension = /\.(ts|mts|js|mjs)$/;
const notSource = /\.(test|spec)\.(ts|mts|js|mjs)$|\.d\.(ts|mts)$/;

/** Modules of a project that its caller has imported or bundled, by their project-relative paths. */
export type SourceModules = Readonly<Record<string, () => Promise<Readonly<Record<string, unknown>>>>>;

/**
 * Finds the agents, workflows and webhooks of a project, in its folder or among `modules`. It skips helpers, whose names start with `_`,
 * and tests; any other file that cannot be a source is a problem.
 */
export async function discoverSources(
  root: string,
  modules?: SourceModules,
): Promise<{ readonly sources: readonly SourceFile[]; readonly problems: readonly SourceProblem[] }> {
  const sources = new Map<string, SourceFile>();
  const problems: SourceProblem[] = [];
  for (const layout of layouts) {
    const { paths, unusable } =
      modules === undefined ? await filesBelow(root, layout) : modulesBelow(Object.keys(modules), layout);
    problems.push(
      ...unusable.map(({ path, reason }) => ({ path, message: toSentence(`${path} ${reason}`) })),
    );
    for (const path of paths) {
      const name = path
        .slice(layout.folder.length + 1)
        .replace(extension, "")
        .replaceAll("/", ".");
      // Names are segments of URLs, in which a space would be escaped.
      const fault = name.includes(" ") ? "must not hold spaces" : faultOfDefinedName(name);
      const key = `${layout.kind} ${nameKey(name)}`;
      const first = sources.get(key);
      if (fault !== undefined)
        problems.push({ path, message: `${quoteName(name)} cannot be a name: it ${fault}.` });
      else if (layout.kind === "workflow" && isReservedName(name))
        problems.push({
          path,
          message: `"${name}" cannot be a name: names that begin with "kit." belong to kit's own workflows. Rename the file or its folder.`,
        });
      else if (first !== undefined)
        problems.push({
          path,
          message: `${first.path} has the name "${name}" already${first.name === name ? "" : ", in another case"}.`,
        });
      else sources.set(key, { kind: layout.kind, name, path });
    }
  }
  return { sources: [...sources.values()], problems };
}

const isSource = (name: string): boolean => extension.test(name) && !notSource.test(name);
const isHelper = (name: string): boolean => name.startsWith("_") || name.startsWith(".");

async function filesBelow(root: string, { folder, nested }: Layout): Promise<FoundFiles> {
  const { paths, unusable } = await findFiles(root, folder, { nested, accepts: isSource, skips: isHelper });
  // A file with the name of the folder is no problem.
  const otherPaths = unusable.filter(({ path, reason }) => path !== folder || reason !== "is not a folder");
  return { paths, unusable: otherPaths };
}

function modulesBelow(modules: readonly string[], { folder, nested }: Layout): FoundFiles {
  const paths = modules.filter((path) => {
    const names = path.startsWith(`${folder}/`) ? path.slice(folder.length + 1).split("/") : [];
    return isSource(names.at(-1) ?? "") && !names.some(isHelper) && (nested || names.length === 1);
  });
  return { paths: paths.sort(), unusable: [] };
}

/** How requests reach an agent. */
export interface Triggers {
  /** Whether HTTP requests reach it: its file exports `triggers = { webhook: true }`, or `http: true`. */
  readonly webhook: boolean;
}

export interface LoadedAgent extends SourceFile {
  readonly kind: "agent";
  readonly definition: AgentDefinition;
  readonly triggers: Triggers;
}

export interface LoadedWebhook extends SourceFile {
  readonly kind: "webhook";
  readonly definition: WebhookDefinition;
}

export type LoadedSource = LoadedAgent | LoadedWorkflow | LoadedWebhook;

const readers: {
  readonly [Kind in SourceFile["kind"]]: (
    source: SourceFile,
    module: Readonly<Record<string, unknown>>,
  ) => LoadedSource | SourceProblem | Promise<LoadedSource | SourceProblem>;
} = { agent: toAgent, workflow: readWorkflow, webhook: toWebhook };

/** The time limit for loading a file, which can await something at its top level. */
const defaultTimeLimitMs = 10_000;

/**
 * Imports a source file; Node runs TypeScript. An error in the file becomes a problem to report, never
 * an exception, and a file that does not finish loading is abandoned, so that the other files still work.
 */
export async function loadSource(
  root: string,
  source: SourceFile,
  options: { readonly timeLimitMs?: number; readonly modules?: SourceModules | undefined } = {},
): Promise<LoadedSource | SourceProblem> {
  const folder = realpathSync(root);
  const fromFile = () => import(pathToFileURL(join(folder, source.path)).href);
  try {
    const load = options.modules?.[source.path] ?? fromFile;
    const module = await loadWithin(load, options.timeLimitMs ?? defaultTimeLimitMs);
    const unknown = unknownExport(source.kind, Object.keys(module));
    if (unknown !== undefined) return problem(source, unknown);
    const result = await readers[source.kind](source, module);
    return "message" in result
      ? { ...result, message: withLine(result.message, join(folder, source.path)) }
      : result;
  } catch (error) {
    if (isHeld(error)) return { ...problem(source, error.message), isHeld: true };
    return problem(source, failureLine(describeFailure(error, folder), source.path));
  }
}

async function loadWithin(
  load: SourceModules[string],
  timeLimitMs: number,
): Promise<Readonly<Record<string, unknown>>> {
  let timer: NodeJS.Timeout | undefined;
  // The timer also keeps the process alive while it only waits for a file that never finishes.
  const limit = new Promise<never>((_, reject) => {
    const seconds = timeLimitMs / 1000;
    timer = setTimeout(
      () => reject(new Error(`It did not finish loading within ${seconds} s.`)),
      timeLimitMs,
    );
  });
  try {
    return await Promise.race([load(), limit]);
  } finally {
    clearTimeout(timer);
  }
}

/** The exports that kit reads, by the kind of the file. It ignores others, unless they look like one of these. */
const knownExports: Readonly<Record<SourceFile["kind"], readonly string[]>> = {
  agent: ["default", "triggers"],
  workflow: ["default", "run", "payload", "result", "schedule"],
  webhook: ["default"],
};

/** Returns an error text for an export without effect that its author probably meant: `shedule`, or `triggers` in a workflow. */
function unknownExport(kind: SourceFile["kind"], names: readonly string[]): string | undefined {
  const ownExports = knownExports[kind];
  for (const name of names) {
    if (ownExports.includes(name) || name.startsWith("_")) continue;
    const near = suggest(name, ownExports);
    if (near !== undefined && !names.includes(near)) {
      return `It exports \`${name}\`, which kit does not know; did you mean \`${near}\`?`;
    }
    const kinds = Object.entries(knownExports).filter(
      ([, exportNames]) => exportNames.includes(name) && name !== "run",
    );
    const [other] =
      kinds.find(([, exportNames]) => !exportNames.includes("default") || name !== "default") ?? [];
    if (other !== undefined && name !== "default") {
      return `It exports \`${name}\`, which the file of ${other === "agent" ? "an agent" : `a ${other}`} may, and that of ${kind === "agent" ? "an agent" : `a ${kind}`} does not.`;
    }
  }
  return undefined;
}

function problem({ kind, name, path }: SourceFile, message: string): SourceProblem {
  return { path, message, source: { kind, name } };
}

function toAgent(source: SourceFile, module: Readonly<Record<string, unknown>>): LoadedAgent | SourceProblem {
  const definition = module.default;
  if (!isAgentDefinition(definition)) {
    return problem(source, "It has no agent as its default export: export default createAgent(…).");
  }
  const fault = "profile" in definition ? faultOfProfile(definition.profile) : undefined;
  if (fault !== undefined) return problem(source, toSentence(fault));
  const triggers = readTriggers(module.triggers);
  if (typeof triggers === "string") return problem(source, triggers);
  return { ...source, kind: "agent", definition, triggers };
}

const triggersSchema = object({ webhook: flag, http: flag }, { of: "trigger" });

/** Reads the triggers that an agent's file declares; returns a text if they are wrong. */
function readTriggers(declaration: unknown): Triggers | string {
  if (declaration === undefined) return { webhook: false };
  if (!isRecord(declaration)) return "`triggers` must be an object such as { webhook: true }.";
  const fault = faultOf(triggersSchema, declaration, ["triggers"]);
  if (fault !== undefined) return toSentence(fault);
  const { webhook, http }: { readonly webhook?: boolean; readonly http?: boolean } = { ...declaration };
  if (webhook !== undefined && http !== undefined && webhook !== http) {
    return "`triggers.webhook` and `triggers.http` say the same thing: give one of them.";
  }
  return { webhook: (webhook ?? http) === true };
}

function readWorkflow(
  source: SourceFile,
  module: Readonly<Record<string, unknown>>,
): LoadedSource | SourceProblem {
  try {
    return toWorkflow(source, module);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return problem(source, error.message);
  }
}

async function toWebhook(
  source: SourceFile,
  module: Readonly<Record<string, unknown>>,
): Promise<LoadedWebhook | SourceProblem> {
  const { faultOfWebhook, isWebhookDefinition } = await import("../../webhooks/define-webhook.ts");
  const definition = module.default;
  if (!isWebhookDefinition(definition)) {
    return problem(source, "It has no webhook as its default export: export default defineWebhook({ … }).");
  }
  const fault = faultOfWebhook(definition);
  if (fault !== undefined) return problem(source, toSentence(fault));
  return { ...source, kind: "webhook", definition };
}

/** A workflow of which a run can start. */
export interface RunnableWorkflow extends Pick<SourceFile, "name"> {
  readonly run: (context: never) => unknown;
  readonly payload?: WorkflowSchema | undefined;
  readonly result?: WorkflowSchema | undefined;
}

export interface LoadedWorkflow extends SourceFile, RunnableWorkflow {
  readonly kind: "workflow";
  /** The default export of the file, if it comes from `defineWorkflow`. */
  readonly definition?: WorkflowDefinition | undefined;
  readonly schedules: readonly WorkflowSchedule[];
}

/** Reads the exports of a workflow file. Throws `TypeError` with the reason if they are invalid. */
function toWorkflow(source: SourceFile, module: Readonly<Record<string, unknown>>): LoadedWorkflow {
  const definition = isWorkflowDefinition(module.default) ? module.default : undefined;
  const loose = ["run", "payload", "result", "schedule"].filter((name) => module[name] !== undefined);
  if (definition !== undefined && loose.length > 0) {
    throw new TypeError(
      `It exports \`${loose[0]}\` beside a workflow as its default export: say it in defineWorkflow({ … }).`,
    );
  }
  if (definition === undefined && typeof module.run !== "function") {
    throw new TypeError(
      "It exports no run function: export default defineWorkflow({ run: async (ctx) => { … } }), or export async function run(ctx) { … }.",
    );
  }
  const { run, payload, result, schedule } = definition ?? module;
  const fault = faultOfWorkflow(definition ?? { run, payload, result });
  if (fault !== undefined) throw new TypeError(fault);
  return {
    ...source,
    kind: "workflow",
    run: run as LoadedWorkflow["run"],
    ...defined({
      payload: payload as WorkflowSchema | undefined,
      result: result as WorkflowSchema | undefined,
      definition,
    }),
    schedules: toSchedules(schedule),
  };
}

function toSchedules(schedule: unknown): readonly WorkflowSchedule[] {
  if (schedule === undefined) return [];
  return (Array.isArray(schedule) ? schedule : [schedule]).map((item: unknown): WorkflowSchedule => {
    if (typeof item === "string") return { cron: item };
    if (!isRecord(item) || typeof item.cron !== "string") {
      throw new TypeError('`schedule` must be a cron expression such as "0 9 * * 1", or have one as `cron`.');
    }
    const { cron, timezone, payload, ...rest } = item;
    const unknown = Object.keys(rest)[0];
    if (unknown !== undefined) throw new TypeError(`\`schedule.${unknown}\` is not known.`);
    if (timezone !== undefined && typeof timezone !== "string") {
      throw new TypeError('`schedule.timezone` must be a name such as "Europe/Berlin".');
    }
    if (payload !== undefined && !isRecord(payload)) {
      throw new TypeError("`schedule.payload` must be an object.");
    }
    return {
      cron: String(cron),
      ...(timezone === undefined ? {} : { timezone }),
      ...(payload === undefined ? {} : { payload }),
    };
  });
}
