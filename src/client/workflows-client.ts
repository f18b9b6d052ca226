import { KitError } from "../base/kit-error.ts";
import type { RunAccepted, RunCompleted, ScheduleRecord, WorkflowEntry } from "../protocol/run.ts";
import type { CallOptions, WorkOptions } from "./call-options.ts";
import { inTime } from "./in-time.ts";
import type {
  AnyProject,
  CompletedRun,
  NameIn,
  PayloadArguments,
  PayloadOf,
  ResultOf,
  WorkflowPayload,
} from "./project-types.ts";
import type { StreamItem } from "./read-stream.ts";
import { createResultStream } from "./result-stream.ts";
import { type RouteCall, route } from "./route-call.ts";
import { followRun, type RunStream } from "./runs-client.ts";
import { connectWorkflow, type WorkflowConnection } from "./socket/workflow-connection.ts";
import type { Transport } from "./transport.ts";

/** A caller that waits for the result alone follows the stream after the last index that there can be. */
const pastAllEvents = 999_999_999_999_999;

/**
 * Workflows. A run goes on when its client goes away. `Workflows` are the names with the modules of their files: they
 * type payloads and results.
 */
export interface WorkflowsClient<Workflows = AnyProject["workflows"]> {
  list(options?: CallOptions): Promise<readonly WorkflowEntry[]>;
  /** When workflows run by themselves, with their next times. */
  schedules(options?: CallOptions): Promise<readonly ScheduleRecord[]>;
  /** Runs a workflow; resolves once the run is on the server's disk. */
  start<Name extends NameIn<Workflows>>(
    name: Name,
    ...given: PayloadArguments<PayloadOf<Workflows[Name]>, WorkOptions>
  ): Promise<RunAccepted>;
  /**
   * Runs a workflow and waits for its result, over broken connections too. What goes wrong once the run
   * is on the server's disk has its id in `meta.run_id`.
   */
  invoke<Name extends NameIn<Workflows>>(
    name: Name,
    ...given: PayloadArguments<PayloadOf<Workflows[Name]>, WorkOptions>
  ): Promise<CompletedRun<ResultOf<Workflows[Name]>>>;
  /** Runs a workflow, and gives its events to its end, over broken connections too. */
  stream<Name extends NameIn<Workflows>>(
    name: Name,
    ...given: PayloadArguments<PayloadOf<Workflows[Name]>, WorkOptions>
  ): RunStream<ResultOf<Workflows[Name]>>;
  /** Opens a WebSocket that takes one run. */
  connect<Name extends NameIn<Workflows>>(
    name: Name,
    options?: CallOptions,
  ): Promise<WorkflowConnection<PayloadOf<Workflows[Name]>, ResultOf<Workflows[Name]>>>;
}

export function createWorkflowsClient(transport: Transport): WorkflowsClient {
  const { request } = transport;
  const startCall = (name: string, payload: WorkflowPayload, options: WorkOptions): RouteCall<RunAccepted> =>
    // Wrapped, so that a payload whose only field is called `payload` arrives as it is.
    route("POST /workflows/{name}", { params: { name }, body: { payload }, options });
  async function* run(call: RouteCall<RunAccepted>, after?: number): AsyncGenerator<StreamItem, void> {
    const { run_id } = await request(call);
    const { signal } = call.options ?? {};
    try {
      yield* followRun(transport, run_id, { after, options: { signal } });
    } catch (error) {
      throw nameRun(error, run_id);
    }
  }
  const stream = (call: RouteCall<RunAccepted>, after?: number): RunStream =>
    createResultStream(run(call, after), (body) => body as RunCompleted);
  return {
    list: async (options) => (await request(route("GET /workflows", { options }))).workflows,
    schedules: async (options) => (await request(route("GET /schedules", { options }))).schedules,
    start: (name, payload = {}, options = {}) => request(startCall(name, payload, options)),
    async invoke(name, payload = {}, options = {}) {
      const { timeoutMs, signal } = options;
      return await inTime(timeoutMs, [signal], (limited) =>
        stream(startCall(name, payload, { ...options, signal: limited }), pastAllEvents).result(),
      );
    },
    stream: (name, payload = {}, options = {}) => stream(startCall(name, payload, options)),
    connect: async (name, options = {}) => await connectWorkflow(transport, { name, options }),
  };
}

/** The run goes on without its client, which can ask for it by the id in the error. */
function nameRun(error: unknown, runId: string): unknown {
  if (!(error instanceof KitError) || error.meta?.run_id !== undefined) return error;
  const { code, message, hint, meta, cause } = error;
  return new KitError({
    code,
    message,
    hint,
    meta: { ...meta, run_id: runId },
    cause,
  });
}
