import type { RunAccepted, RunCompleted, WorkflowEntry } from "../protocol/http/run-schemas.ts";
import type { CallOptions, WorkOptions } from "./call-options.ts";
import { follow } from "./follow.ts";
import type { StreamItem } from "./read-stream.ts";
import { createResultStream } from "./result-stream.ts";
import type { RunStream } from "./runs-client.ts";
import { connectWorkflow, type WorkflowConnection } from "./socket/workflow-connection.ts";
import type { Call, Transport } from "./transport.ts";

export type WorkflowPayload = Readonly<Record<string, unknown>>;

/** Workflows. A run goes on when its client goes away. */
export interface WorkflowsClient {
  list(options?: CallOptions): Promise<readonly WorkflowEntry[]>;
  /** Runs a workflow; resolves once the run is on the server's disk. */
  start(name: string, payload?: WorkflowPayload, options?: WorkOptions): Promise<RunAccepted>;
  /** Runs a workflow and waits for its result. Throws its failure, with `meta.run_id`. */
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
  async function* run(call: Call): AsyncGenerator<StreamItem, void> {
    const { run_id } = await request<RunAccepted>(call);
    const { signal } = call.options ?? {};
    const options = signal === undefined ? {} : { signal };
    yield* follow(transport, { method: "GET", path: ["runs", run_id, "stream"], options });
  }
  return {
    async list(options = {}) {
      const call = { method: "GET", path: ["workflows"], options } as const;
      return (await request<{ workflows: readonly WorkflowEntry[] }>(call)).workflows;
    },
    start: (name, payload = {}, options = {}) => request(startCall(name, payload, options)),
    invoke: (name, payload = {}, options = {}) =>
      request({ ...startCall(name, payload, options), query: { wait: "result" }, patient: true }),
    stream: (name, payload = {}, options = {}) =>
      createResultStream(run(startCall(name, payload, options)), (body) => body as RunCompleted),
    connect: async (name, options = {}) =>
      await connectWorkflow(transport, { path: ["workflows", name], options }),
  };
}
