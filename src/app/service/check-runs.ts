import { noApplicationCalls } from "../../agents/define/create-agent.ts";
import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import { thrownText } from "../../base/thrown.ts";
import { checkReplay, type OpenRun, type ReplayVerdict } from "../../engine/shared/runs/replay-check.ts";
import { isReservedName } from "../../protocol/built-in-workflows.ts";
import type { RunStatus } from "../../protocol/run.ts";
import type { SandboxFactory } from "../../sandboxes/contract.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { SoleFence } from "../cluster/owners.ts";
import { toProfile } from "../config/agent-config.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import { AgentFactory, toAgentRuntime } from "../runtime/agent-factory.ts";
import { maskOf } from "../runtime/known-secrets.ts";
import { createObservers } from "../runtime/observers.ts";
import type { ProjectRuns } from "../runtime/run-children.ts";
import { runWorkflow, type WorkflowRuntime } from "../runtime/run-workflow.ts";
import { createToCause } from "../sources/describe-failure.ts";
import type { SourceProblem } from "../sources/discover-sources.ts";
import { Sources } from "../sources/sources.ts";
import { toDispatchInput, toSessionKey } from "./session-input.ts";

export interface CheckRunsOptions {
  /** The folder with the workflows to check. */
  readonly root: string;
  readonly loaded: Pick<LoadedConfig, "config" | "environment" | "fileSecrets">;
  readonly runs: AsyncIterable<OpenRun>;
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for which the code of a run can make no progress before the check stops it; default 5,000. */
  readonly patienceMs?: number | undefined;
  readonly onProgress?: ((checked: number) => void) | undefined;
}

/** How a run would continue with other code. */
export interface CheckedRun {
  readonly run_id: string;
  readonly workflow: string;
  readonly status: RunStatus;
  readonly outcome: ReplayVerdict["outcome"];
  /** Number of recorded calls. */
  readonly recorded_positions: number;
  /** Position in the journal at which the code makes another call or stops; from 1. */
  readonly position?: number | undefined;
  /** The journal's entry at `position`: `step "build"`. */
  readonly recorded?: string | undefined;
  /** The call that the code makes instead. */
  readonly asked?: string | undefined;
  readonly message?: string | undefined;
}

export interface RunCheck {
  /** Oldest run first. */
  readonly runs: readonly CheckedRun[];
  /** Files that could not be loaded. */
  readonly problems: readonly SourceProblem[];
}

/** Number of runs checked at the same time. */
const atATime = 32;

/**
 * Replays runs that have not ended against the code of a folder. The code around the steps runs, as in each replay;
 * the work of the steps does not, and nothing is written. Runs of kit's own workflows are left out: their code is not in the folder.
 */
export async function checkRuns(options: CheckRunsOptions): Promise<RunCheck> {
  const sources = await Sources.open(options.root, {
    defaults: toProfile(options.loaded.config.agent ?? {}, options.loaded.config.compaction),
  });
  try {
    const runtime = createRuntime(sources, options);
    const checked: Promise<CheckedRun>[] = [];
    const working = new Set<Promise<CheckedRun>>();
    let done = 0;
    for await (const open of options.runs) {
      options.signal?.throwIfAborted();
      if (isReservedName(open.run.workflow)) continue;
      const check = checkRun(open, { sources, runtime, patienceMs: options.patienceMs }).finally(() => {
        working.delete(check);
        done += 1;
        options.onProgress?.(done);
      });
      checked.push(check);
      working.add(check);
      if (working.size >= atATime) await Promise.race(working);
    }
    return { runs: await Promise.all(checked), problems: sources.loaded.problems };
  } finally {
    sources.close();
  }
}

interface CheckParts {
  readonly sources: Sources;
  readonly runtime: WorkflowRuntime;
  readonly patienceMs: number | undefined;
}

async function checkRun(open: OpenRun, { sources, runtime, patienceMs }: CheckParts): Promise<CheckedRun> {
  const { run_id, workflow, status } = open.run;
  const subject = { run_id, workflow, status };
  const positions = { recorded_positions: open.entries.length };
  try {
    const code = sources.workflow(workflow);
    const verdict = await checkReplay(
      open,
      (context, request) =>
        runWorkflow(runtime, code, { context, request, hasStartEvent: true, runs: noRuns(sources) }),
      { patienceMs },
    );
    return { ...subject, outcome: verdict.outcome, ...positions, ...detailsOf(verdict) };
  } catch (error) {
    return { ...subject, outcome: "fails", ...positions, message: textOf(error) };
  }
}

function detailsOf(verdict: ReplayVerdict): Partial<CheckedRun> {
  if (verdict.outcome === "matches") return {};
  if (verdict.outcome === "unclear") {
    const { position, kind, name } = verdict.before;
    return {
      position,
      recorded: name === "" ? kind : `${kind} ${JSON.stringify(name)}`,
      message:
        "The code waits there for something that is not in the journal: a call that has not ended, or the outside world.",
    };
  }
  const { error } = verdict;
  if (verdict.outcome === "fails") return { message: textOf(error) };
  const { position, recorded, asked } = error.meta ?? {};
  const location = typeof position === "number" ? { position } : {};
  return {
    ...location,
    ...(typeof recorded === "string" ? { recorded } : {}),
    ...(typeof asked === "string" ? { asked } : {}),
    message: typeof position === "number" ? error.message : textOf(error),
  };
}

function textOf(error: unknown): string {
  const message = thrownText(error);
  return error instanceof KitError && error.hint !== undefined ? `${message} ${error.hint}` : message;
}

/** Never called: calls of other runs are parts of steps, and the check does not execute steps. */
function noRuns(sources: Sources): ProjectRuns {
  const never = <Value>(): Promise<Value> => new Promise<Value>(() => undefined);
  return {
    nameOf: (workflow) => sources.workflowName(workflow),
    start: never,
    result: never,
    signal: never,
    cancel: never,
    expect: () => undefined,
  };
}

/** A workspace that never opens: code that uses it outside a step makes no progress. */
const noSandbox: SandboxFactory = { name: "none", open: () => new Promise(() => undefined) };

function createRuntime(sources: Sources, { loaded }: CheckRunsOptions): WorkflowRuntime {
  const { config, environment, fileSecrets } = loaded;
  const mask = maskOf({ config, environment, ...defined({ fileSecrets }) });
  const observers = createObservers();
  const toCause = createToCause(sources.root, mask);
  const defaults = toProfile(config.agent ?? {}, config.compaction);
  const runtime = toAgentRuntime(
    {
      root: sources.root,
      store: new InMemorySessionStore(),
      sandbox: noSandbox,
      resolveModel: () => new Promise(() => undefined),
      defaultModel: defaults.model ?? "offline/guide",
      env: environment,
      mask,
      close: async () => undefined,
    },
    {
      observers,
      causeOf: toCause,
      sources: sources.guard,
      callsOf: () => noApplicationCalls,
      principal: () => undefined,
      approvals: undefined,
    },
  );
  return {
    env: environment,
    validateJson: runtime.validateJson,
    factory: new AgentFactory({ sources, runtime, defaults }),
    toAdmitted: (agent, { id, session = "default", input, idempotencyKey: _, ...choices }) => ({
      ...toSessionKey({ agent: sources.agentName(agent), instance_id: id, session }),
      input: toDispatchInput(input, choices),
    }),
    causeOf: toCause,
    observers,
    mask,
    stores: new SoleFence(runtime.store, { durable: false, distributed: false }),
  };
}
