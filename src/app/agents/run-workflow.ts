import type { AgentContext } from "../../agents/create-agent.ts";
import type { Agent } from "../../agents/harness.ts";
import { isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import type { EventBody, KitEvent } from "../../protocol/event.ts";
import type { WorkflowContext } from "../../workflows/workflow-context.ts";
import type { App } from "./create-app.ts";

export interface WorkflowRun {
  readonly name: string;
  readonly payload: AgentContext["payload"];
  readonly env: AgentContext["env"];
  readonly signal: AbortSignal;
  /** Hears `run_start`, `log` and `run_end`; events of agents come through `app.observe`. */
  readonly onEvent?: (event: KitEvent) => void;
}

/** Runs a workflow in this process and gives its result. Agents it brought along are closed after it. */
export async function runWorkflow(
  app: App,
  run: WorkflowRun,
): Promise<{ readonly run_id: string; readonly result: unknown }> {
  const workflow = app.workflows().find((item) => item.name === run.name);
  if (workflow === undefined) throw unknownWorkflow(run.name, app);
  const runId = createId("run");
  const agents: Agent[] = [];
  const emit = createRunEmitter(run, runId);
  const context: WorkflowContext = {
    id: runId,
    payload: run.payload,
    env: run.env,
    signal: run.signal,
    log: {
      info: (message, data) =>
        emit({ type: "log", level: "info", message, ...(data === undefined ? {} : { data }) }),
      warn: (message, data) =>
        emit({ type: "log", level: "warning", message, ...(data === undefined ? {} : { data }) }),
      error: (message, data) =>
        emit({ type: "log", level: "error", message, ...(data === undefined ? {} : { data }) }),
    },
    async init(definition, options = {}) {
      const agent = await app.init(definition, {
        id: options.id ?? runId,
        payload: run.payload,
        env: run.env,
        ...(options.name === undefined ? {} : { name: options.name }),
      });
      agents.push(agent);
      return agent;
    },
  };
  const started = performance.now();
  let failed = true;
  emit({ type: "run_start", workflow: run.name });
  try {
    const result = await (workflow.run as (context: WorkflowContext) => unknown)(context);
    failed = false;
    return { run_id: runId, result };
  } finally {
    emit({ type: "run_end", workflow: run.name, is_error: failed, duration_ms: performance.now() - started });
    for (const agent of agents) await agent.close();
  }
}

function createRunEmitter(run: WorkflowRun, runId: string): (body: EventBody) => void {
  let index = 0;
  return (body) => {
    index += 1;
    run.onEvent?.({
      ...body,
      index,
      timestamp: isoTime(Date.now()),
      agent: "",
      instance_id: runId,
      session: "",
      operation_id: runId,
      run_id: runId,
    });
  };
}

function unknownWorkflow(name: string, app: App): KitError {
  const names = app
    .workflows()
    .map((workflow) => workflow.name)
    .join(", ");
  return new KitError({
    code: "workflow_not_found",
    message: `There is no workflow named "${name}".`,
    hint: names === "" ? `Add one as src/workflows/${name}.ts.` : `The workflows are: ${names}.`,
  });
}
