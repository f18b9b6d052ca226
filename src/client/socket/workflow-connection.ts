// Projects for browsers need not list this library in their tsconfig.
/// <reference lib="esnext.disposable" preserve="true" />
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import type { RunCompleted } from "../../protocol/run.ts";
import type { PayloadArguments } from "../../protocol/run-calls.ts";
import type { CallOptions } from "../call-options.ts";
import { follow } from "../follow.ts";
import type { WorkflowPayload } from "../project-types.ts";
import type { StreamItem } from "../read-stream.ts";
import { createResultStream } from "../result-stream.ts";
import { route } from "../route-call.ts";
import type { RunStream } from "../runs-client.ts";
import { isTransient } from "../to-kit-error.ts";
import type { Transport } from "../transport.ts";
import { openSocket } from "./open-socket.ts";

/**
 * A WebSocket to a workflow for one run; the server then closes it.
 *
 * A run continues without its connection. If the connection breaks after the start of the run, the client resumes the
 * stream over HTTP after the last event.
 */
export interface WorkflowConnection<Payload = WorkflowPayload, Result = unknown> extends AsyncDisposable {
  /** Runs the workflow when the stream is first read. Leaving the stream early does not affect the run. */
  invoke(
    ...given: PayloadArguments<Payload, { readonly signal?: AbortSignal | undefined }>
  ): RunStream<Result>;
  /** Resolves when the server answers. */
  ping(): Promise<void>;
  /** Closes the connection, and ends the stream of its run with `aborted`; the run continues. */
  close(): void;
}

export async function connectWorkflow(
  transport: Transport,
  { name, options }: { readonly name: string; readonly options: CallOptions },
): Promise<WorkflowConnection> {
  const { path } = route("POST /workflows/{name}", { params: { name }, body: {} });
  const explainRefusal = async (): Promise<void> => {
    const { workflows } = await transport.request("GET /workflows", {});
    if (workflows.some((entry) => entry.name === name)) return;
    throw new KitError({ code: "workflow_not_found", message: "The server has no such workflow." });
  };
  const socket = await openSocket(transport, { path, options, explainRefusal });

  async function* run(
    payload: WorkflowPayload,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<StreamItem, void> {
    let runId = "";
    let after: number | undefined;
    const asked = { payload, ...transport.trace() };
    const frame = { type: "invoke", request_id: createId("req"), ...asked } as const;
    const onStarted = (id = ""): void => {
      runId = id;
    };
    try {
      for await (const item of socket.ask({ frame, onStarted, abortOnLeave: false, signal })) {
        if (item.kind === "event") after = item.event.index;
        yield item.kind === "result"
          ? { ...item, body: { status: "completed", run_id: runId, result: item.body } }
          : item;
      }
    } catch (error) {
      if (runId === "" || signal?.aborted === true || !isTransient(error)) throw error;
      const call = route("GET /runs/{run_id}/stream", { params: { run_id: runId }, options: { signal } });
      yield* follow(transport, { ...call, after });
    }
  }

  return {
    invoke: (payload = {}, { signal } = {}) =>
      createResultStream(run(payload, signal), (body) => body as RunCompleted),
    ping: () => socket.ping(),
    close: () => socket.close(),
    async [Symbol.asyncDispose]() {
      socket.close();
    },
  };
}
