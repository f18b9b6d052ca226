import { KitError } from "../base/kit-error.ts";
import type { RunAccepted, RunCompleted, ScheduleRecord, WorkflowEntry } from "../protocol/run.ts";
import type { PayloadArguments } from "../protocol/run-calls.ts";
import type { CallOptions, WorkOptions } from "./call-options.ts";
import { inTime } from "./in-time.ts";
import type {
  AnyProject,
  CompletedRun,
  NameIn,
  PayloadOf,
  ResultOf,
  WorkflowPayload,
} from "./project-types.ts";
import type { StreamItem } from "./read-stream.ts";
import { createResultStream } from "./result-stream.ts";
import { followRun, type RunStream } from "./runs-client.ts";
import { connectWorkflow, type WorkflowConnection } from "./socket/workflow-connection.ts";
import type { Transport } from "./transport.ts";

/** The largest index: a caller that only waits for the result reads the stream after it. */
const pastAllEvents = 999_999_999_999_999;

/**
 * Calls to workflows. A run continues if its client disconnects. `Workflows` maps the names to the modules of their files, which
 * type payloads and results.
 */
export interface WorkflowsClient<Workflows = AnyProject["workflows"]> {
  list(options?: CallOptions): Promise<readonly WorkflowEntry[]>;
  /** Lists the schedules of workflows, with their next times. */
  schedules(options?: CallOptions): Promise<readonly ScheduleRecord[]>;
  /** Starts a workflow; resolves once the run is on the server's disk. */
  start<Name extends NameIn<Workflows>>(
    name: Name,
    ...given: PayloadArguments<PayloadOf<Workflows[Name]>, WorkOptions>
  ): Promise<RunAccepted>;
  /**
   * Runs a workflow and waits for its result, also over broken connections. An error after the run
   * is on the server's disk has the run's id in `meta.run_id`.
   */
  invoke<Name extends NameIn<Workflows>>(
    name: Name,
    ...given: PayloadArguments<PayloadOf<Workflows[Name]>, WorkOptions>
  ): Promise<CompletedRun<ResultOf<Workflows[Name]>>>;
  /** Runs a workflow and yields its events to its end, also over broken connections. */
  stream<Name extends NameIn<Workflows>>(
    name: Name,
    ...given: PayloadArguments<PayloadOf<Workflows[Name]>, WorkOptions>
  ): RunStream<ResultOf<Workflows[Name]>>;
  /** Opens a WebSocket for one run. */
  connect<Name extends NameIn<Workflows>>(
    name: Name,
    options?: CallOptions,
  ): Promise<WorkflowConnection<PayloadOf<Workflows[Name]>, ResultOf<Workflows[Name]>>>;
}

interface StartInput {
  readonly name: string;
  readonly payload: WorkflowPayload | undefined;
  readonly options: WorkOptions | undefined;
}

export function createWorkflowsClient(transport: Transport): WorkflowsClient {
  const { request } = transport;
  const start = ({ name, payload = {}, options = {} }: StartInput): Promise<RunAccepted> =>
    // Wrap the payload, so that one whose only field is called `payload` arrives unchanged.
    request("POST /workflows/{name}", { params: { name }, body: { payload }, options });
  async function* run(input: StartInput, after?: number): AsyncGenerator<StreamItem, void> {
    const { run_id } = await start(input);
    try {
      yield* followRun(transport, run_id, { after, options: { signal: input.options?.signal } });
    } catch (error) {
      throw nameRun(error, run_id);
    }
  }
  const stream = (input: StartInput, after?: number): RunStream =>
    createResultStream(run(input, after), (body) => body as RunCompleted);
  return {
    list: async (options) => (await request("GET /workflows", { options })).workflows,
    schedules: async (options) => (await request("GET /schedules", { options })).schedules,
    start: (name, payload, options) => start({ name, payload, options }),
    async invoke(name, payload, options = {}) {
      const { timeoutMs, signal } = options;
      return await inTime(timeoutMs, [signal], (limited) =>
        stream({ name, payload, options: { ...options, signal: limited } }, pastAllEvents).result(),
      );
    },
    stream: (name, payload, options) => stream({ name, payload, options }),
    connect: async (name, options = {}) => await connectWorkflow(transport, { name, options }),
  };
}

/** Adds the run's id to an error: the run continues, and the client can read it later. */
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
