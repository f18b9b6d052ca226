import { KitError } from "../../base/kit-error.ts";
import { startActionOf } from "../../protocol/built-in-workflows.ts";
import type { ClientFrame } from "../../protocol/socket-frame.ts";
import type { ServiceContext } from "../service-context.ts";
import { followRun, toCompleted } from "../streams/run-stream.ts";
import type { ConnectionPeer } from "./agent-connection.ts";
import {
  type Connection,
  closeCodes,
  type FrameHandler,
  inTraceOf,
  misplacedFrame,
} from "./socket-connection.ts";

type InvokeFrame = Extract<ClientFrame, { type: "invoke" }>;

/**
 * A connection to a workflow for one run; the server then closes it. The run is durable and continues if the connection
 * breaks; a client can resume its stream at `GET /runs/{run_id}/stream`.
 */
export function serveWorkflow(
  connection: Connection,
  workflow: string,
  {
    context,
    peer,
  }: { readonly context: ServiceContext; readonly peer: Pick<ConnectionPeer, "principal" | "request"> },
): FrameHandler {
  const { service, authorization } = context;
  const { engine } = service;
  const clientGone = new AbortController();
  let requestId: string | undefined;
  let runId: string | undefined;
  let cancelled = false;
  let cancelling = false;

  const perform = async ({ request_id, payload = {}, ...trace }: InvokeFrame): Promise<void> => {
    const { signal } = clientGone;
    try {
      // Check the permission again: the handshake can be long ago.
      const { principal } = peer;
      await authorization.check({ principal, action: startActionOf(workflow), workflow });
      const caller = { request: peer.request, principal: principal?.id };
      const { run_id } = await inTraceOf(trace, peer.request, () =>
        service.startRun(workflow, payload, caller),
      );
      runId = run_id;
      if (cancelled) await cancel();
      connection.send({ type: "started", request_id, run_id });
      for await (const event of followRun(engine, run_id, { signal })) {
        await connection.deliver(JSON.stringify({ type: "event", request_id, event }));
      }
      const { result } = toCompleted(run_id, await engine.awaitRun(run_id, { signal }));
      connection.send({ type: "result", request_id, result });
    } catch (error) {
      if (signal.aborted) return;
      connection.sendError(error, request_id);
    }
    connection.close(closeCodes.done, "The run has ended.");
  };
  const cancel = async (): Promise<void> => {
    cancelled = true;
    if (runId === undefined || cancelling) return;
    cancelling = true;
    try {
      const { principal } = peer;
      await authorization.check({ principal, action: "run.cancel", workflow, run_id: runId });
      await engine.cancelRun(runId);
    } catch (error) {
      // The run continues, so this error does not answer it and has no request id.
      connection.sendError(error);
    } finally {
      cancelling = false;
    }
  };

  return {
    onFrame(frame) {
      switch (frame.type) {
        case "invoke":
          if (requestId !== undefined) {
            throw new KitError({ code: "conflict", message: "This connection has already had its run." });
          }
          requestId = frame.request_id;
          void perform(frame);
          return;
        case "abort":
          if (frame.request_id === requestId) void cancel();
          return;
        case "ping":
          connection.send({ type: "pong" });
          return;
        case "prompt":
        case "approve":
          throw misplacedFrame(frame.type);
      }
    },
    onClose: () => clientGone.abort(),
    finish: () => connection.close(closeCodes.goingAway, "The server is closing."),
  };
}
