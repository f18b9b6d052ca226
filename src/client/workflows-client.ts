import { KitError } from "../base/kit-error.ts";
import type { RunAccepted, RunCompleted, WorkflowEntry } from "../protocol/run.ts";
import type { CallOptions, WorkOptions } from "./call-options.ts";
import { inTime } from "./in-time.ts";
import type { StreamItem } from "./read-stream.ts";
import { createResultStream } from "./result-stream.ts";
import { followRun, type RunStream } from "./runs-client.ts";
import { connectWorkflow, type WorkflowConnection } from "./socket/workflow-connection.ts";
import type { Call, Transport } from "./transport.ts";

export type WorkflowPayload = Readonly<Record<string, unknown>>;

/** Who waits for a result alone follows the stream after the last index that there can be. */
const pastAllEvents = 999_999_999_999_999;

/** Workflows. A run goes on when its client goes away. */
export interface WorkflowsClient {
  list(options?: CallOptions): Promise<readonly WorkflowEntry[]>;
  /** Runs a workflow; resolves once the run is on the server's disk. */
  start(name: string, payload?: WorkflowPayload, options?: WorkOptions): Promise<RunAccepted>;
  /**
   * Runs a workflow and waits for its result, over broken connections too. What goes wrong once the run
   * is on the server's disk has its id in `meta.run_id`.
   */
  invoke(name: string, payload?: WorkflowPayload, options?: WorkOptions): Promise<RunCompleted>;
  /** Runs a workflow, and gives its events to its end, over broken connections too. */
  stream(name: string, payload?: WorkflowPayload, options?: WorkOptions): RunStream;
  /** Opens a WebSocket that takes one run. */
  connect(name: string, options?: CallOptions): Promise<WorkflowConnection>;
}

export function createWorkflowsClient(transport: Transport): WorkflowsClient {
  const { request } = transport;
  const startCall = (name: string, payload: WorkflowPayload, options: WorkOptions): Call => ({
    method: "POST",
    path: ["workflows", name],
    // Wrapped, so that a payload whose only field is called `payload` arrives as it is.
    body: { payload },
    options,
  });
  async function* run(call: Call, after?: number): AsyncGenerator<StreamItem, void> {
    const { run_id } = await request<RunAccepted>(call);
    const { signal } = call.options ?? {};
    const options = signal === undefined ? {} : { signal };
    try {
      yield* followRun(transport, run_id, { after, options });
    } catch (error) {
      throw nameRun(error, run_id);
    }
  }
  const stream = (call: Call, after?: number): RunStream =>
    createResultStream(run(call, after), (body) => body as RunCompleted);
  return {
    async list(options = {}) {
      const call = { method: "GET", path: ["workflows"], options } as const;
      return (await request<{ workflows: readonly WorkflowEntry[] }>(call)).workflows;
    },
    start: (name, payload = {}, options = {}) => request(startCall(name, payload, options)),
    async invoke(name, payload = {}, options = {}) {
      const { timeoutMs, signal } = options;
      return await inTime(timeoutMs, [signal], (limited) =>
        stream(startCall(name, payload, { ...options, signal: limited }), pastAllEvents).result(),
      );
    },
    stream: (name, payload = {}, options = {}) => stream(startCall(name, payload, options)),
    connect: async (name, options = {}) =>
      await connectWorkflow(transport, { path: ["workflows", name], options }),
  };
}

/** The run goes on whatever happens to its client, who can ask for it by its id. */
function nameRun(error: unknown, runId: string): unknown {
  if (!(error instanceof KitError) || error.meta?.run_id !== undefined) return error;
  const { code, message, hint, meta, cause } = error;
  return new KitError({
    code,
    message,
    ...(hint === undefined ? {} : { hint }),
    meta: { ...meta, run_id: runId },
    cause,
  });
}
