import type { AgentContext, AgentDefinition } from "../../agents/create-agent.ts";
import type { Agent } from "../../agents/harness.ts";
import { isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import type { EventBody, KitEvent } from "../../protocol/event.ts";
import type { WorkflowContext, WorkflowLog } from "../../workflows/workflow-context.ts";
import type { RunOptions, WorkflowResult } from "./app.ts";
import { describeFailure, failureLine } from "./describe-failure.ts";
import type { LoadedWorkflow } from "./load-source.ts";

/** What a run needs of the application it runs in. */
export interface WorkflowHost {
  readonly root: string;
  readonly env: AgentContext["env"];
  bring(
    definition: AgentDefinition,
    context: AgentContext & { readonly name?: string | undefined; readonly run_id: string },
  ): Promise<Agent>;
  /** Hears the run's own events; those of its agents come from the agents. */
  publish(event: KitEvent): void;
  /** Takes secrets out of what the log says. */
  mask(text: string): string;
}

/** Runs a workflow to its end. The agents that it brought along are closed with it. */
export async function runWorkflow(
  host: WorkflowHost,
  workflow: LoadedWorkflow,
  options: RunOptions,
): Promise<WorkflowResult> {
  const runId = createId("run");
  const events = createRunEvents(host, runId, options.onEvent);
  const signal = options.signal ?? new AbortController().signal;
  const env = options.env ?? host.env;
  const payload = options.payload ?? {};
  const agents = createRunAgents(host, { id: runId, env, payload }, events.forward);
  const stop = (): void => void agents.close();
  signal.addEventListener("abort", stop, { once: true });
  const context: WorkflowContext = {
    id: runId,
    payload,
    env,
    signal,
    log: createLog(events.emit, host.mask),
    init: agents.init,
    ...(options.request === undefined ? {} : { req: options.request }),
  };
  const started = performance.now();
  let failed = true;
  events.emit({ type: "run_start", workflow: workflow.name });
  try {
    signal.throwIfAborted();
    const work = (workflow.run as (context: WorkflowContext) => unknown)(context);
    const result = await untilAborted(Promise.resolve(work), signal);
    failed = false;
    return { run_id: runId, result };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw toRunError(error, { root: host.root, name: workflow.name, runId });
  } finally {
    signal.removeEventListener("abort", stop);
    await agents.close();
    const duration_ms = performance.now() - started;
    events.emit({ type: "run_end", workflow: workflow.name, is_error: failed, duration_ms });
  }
}

/** A run that ignores its signal is left behind: its agents are stopped, and nobody waits for it. */
function untilAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason);
    signal.addEventListener("abort", leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", leave));
  });
}

interface RunAgents {
  readonly init: WorkflowContext["init"];
  close(): Promise<void>;
}

/** The agents of a run: the same definition under the same name is one agent, however often it is asked for. */
function createRunAgents(
  host: WorkflowHost,
  run: AgentContext,
  onEvent: (event: KitEvent) => void,
): RunAgents {
  const asked = new Map<AgentDefinition, Map<string, Promise<Agent>>>();
  const owners = new Map<string, AgentDefinition>();
  const bring = async (definition: AgentDefinition, named: { id: string; name: string | undefined }) => {
    const agent = await host.bring(definition, { ...run, ...named, run_id: run.id });
    const key = JSON.stringify([agent.name, agent.id]);
    const owner = owners.get(key) ?? definition;
    if (owner !== definition) throw sameName(agent.name);
    owners.set(key, definition);
    agent.subscribe(onEvent);
    return agent;
  };
  return {
    init(definition, { id = run.id, name } = {}) {
      const mine = asked.get(definition) ?? new Map<string, Promise<Agent>>();
      asked.set(definition, mine);
      const key = JSON.stringify([id, name]);
      const agent = mine.get(key) ?? bring(definition, { id, name });
      mine.set(key, agent);
      agent.catch(() => mine.delete(key));
      return agent;
    },
    async close() {
      const agents = [...asked.values()].flatMap((mine) => [...mine.values()]);
      await Promise.allSettled(agents.map(async (agent) => (await agent).close()));
    },
  };
}

function sameName(name: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: `Two agents of this run are named "${name}", and would share one history.`,
    hint: "Give each a `name` in its profile, or as ctx.init(agent, { name }).",
  });
}

interface RunEvents {
  emit(body: EventBody): void;
  /** Puts an agent's event into the stream of the run. */
  forward(event: KitEvent): void;
}

/** One stream for a run and its agents, counted from 1. A listener that throws does not harm the run. */
function createRunEvents(host: WorkflowHost, runId: string, onEvent: RunOptions["onEvent"]): RunEvents {
  let index = 0;
  const deliver = (event: KitEvent): KitEvent => {
    index += 1;
    const counted = { ...event, index };
    try {
      const heard = onEvent?.(counted);
      if (heard instanceof Promise) heard.catch(() => undefined);
    } catch {
      // The listener's own affair: application-wide observers have a place to report to, this is a caller's.
    }
    return counted;
  };
  return {
    forward: deliver,
    emit(body) {
      const place = { agent: "", instance_id: runId, session: "", operation_id: runId, run_id: runId };
      host.publish(deliver({ ...body, ...place, index, timestamp: isoTime(Date.now()) }));
    },
  };
}

function createLog(emit: RunEvents["emit"], mask: WorkflowHost["mask"]): WorkflowLog {
  const write =
    (level: Extract<EventBody, { type: "log" }>["level"]): WorkflowLog["info"] =>
    (message, data) =>
      emit({
        type: "log",
        level,
        message: mask(message),
        ...(data === undefined ? {} : { data: maskedData(data, mask) }),
      });
  return { info: write("info"), warn: write("warning"), error: write("error") };
}

/** What an event carries is JSON: what is none, such as an error or a cycle, becomes a text. */
function maskedData(data: unknown, mask: WorkflowHost["mask"]): unknown {
  try {
    const plain = data instanceof Error ? { name: data.name, message: data.message } : data;
    return JSON.parse(mask(JSON.stringify(plain) ?? "null"));
  } catch {
    return mask(String(data));
  }
}

function toRunError(
  error: unknown,
  run: { readonly root: string; readonly name: string; readonly runId: string },
): KitError {
  if (error instanceof KitError) {
    const { code, message, hint } = error;
    const meta = { ...error.meta, run_id: run.runId };
    return new KitError({ code, message, meta, cause: error, ...(hint === undefined ? {} : { hint }) });
  }
  return new KitError({
    code: "internal_error",
    message: `The workflow "${run.name}" failed.`,
    hint: failureLine(describeFailure(error, run.root)),
    meta: { run_id: run.runId },
    cause: error,
  });
}
