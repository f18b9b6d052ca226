import type { InstanceTarget } from "../../app/service/service.ts";
import { KitError } from "../../base/kit-error.ts";
import type { Principal } from "../../protocol/access.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { ClientFrame, ServerFrame } from "../../protocol/socket-frame.ts";
import { decideCall } from "../routes/approvals.ts";
import { checkAgent, type ServiceContext } from "../service-context.ts";
import { createFrameBuffer, toFrameItem } from "../streams/event-streams.ts";
import {
  type Connection,
  closeCodes,
  type FrameHandler,
  inTraceOf,
  misplacedFrame,
} from "./socket-connection.ts";

export interface ConnectionPeer {
  readonly principal: Principal | undefined;
  /** The handshake. */
  readonly request: Request;
  /** Counts a request for the rate limit. Throws `too_many_requests`. */
  readonly count: () => void;
}

type PromptFrame = Extract<ClientFrame, { type: "prompt" }>;
type ApproveFrame = Extract<ClientFrame, { type: "approve" }>;

/**
 * A connection to an instance for several prompts: those of one session run in their order, others concurrently.
 * The server aborts running prompts when the connection closes.
 */
export function serveAgent(
  connection: Connection,
  target: InstanceTarget,
  { context, peer }: { readonly context: ServiceContext; readonly peer: ConnectionPeer },
): FrameHandler {
  const { service, authorization, limits } = context;
  const { principal } = peer;
  const about = { principal, agent: target.agent, instance: target.instance_id };
  const underWay = new Map<string, AbortController>();
  /** Resolves once every earlier prompt has its place in the line of its session, or was refused. */
  let placed: Promise<unknown> = Promise.resolve();
  /** Approvals in progress. */
  let deciding = 0;
  let closing = false;

  const accept = (frame: PromptFrame): void => {
    const { request_id } = frame;
    if (closing) throw new KitError({ code: "unavailable", message: "The server is closing." });
    if (underWay.has(request_id)) {
      throw new KitError({ code: "conflict", message: "A request with this request_id is under way." });
    }
    if (underWay.size >= limits.webSocketPrompts) throw tooMany("prompts", limits.webSocketPrompts);
    peer.count();
    const controller = new AbortController();
    underWay.set(request_id, controller);
    // Permissions are checked concurrently; prompts join the line in the order of their frames.
    const permitted = authorization.check({ ...about, action: "agent.prompt" });
    const mayBegin = Promise.all([permitted, placed]);
    void answer(frame, controller, mayBegin);
    placed = Promise.allSettled([placed, mayBegin]);
  };

  const answer = async (
    frame: PromptFrame,
    controller: AbortController,
    mayBegin: Promise<unknown>,
  ): Promise<void> => {
    const { request_id } = frame;
    try {
      await mayBegin;
      controller.signal.throwIfAborted();
      // The agent's file can have changed since the connection was opened.
      checkAgent(context, target.agent);
      const result = await perform(frame, controller);
      connection.send({ type: "result", request_id, result });
    } catch (error) {
      connection.sendError(controller.signal.aborted ? controller.signal.reason : error, request_id);
    } finally {
      underWay.delete(request_id);
      if (closing && underWay.size === 0) leave();
    }
  };

  const perform = async (
    { type: _, request_id, session = "default", traceparent, tracestate, ...request }: PromptFrame,
    controller: AbortController,
  ): Promise<unknown> => {
    const encode = (event: KitEvent): string =>
      JSON.stringify({ type: "event", request_id, event } satisfies ServerFrame);
    const queue = createFrameBuffer({
      maxLength: limits.unreadBytes,
      onOverflow() {
        controller.abort(new KitError({ code: "aborted", message: "The client did not read fast enough." }));
        connection.close(closeCodes.tooSlow, "The client does not read.");
      },
    });
    const sent = (async () => {
      for (let items = await queue.take(); items !== undefined; items = await queue.take()) {
        for (const item of items) await connection.deliver(typeof item === "string" ? item : encode(item));
      }
    })();
    try {
      const { signal } = controller;
      const onStart = (): void => connection.send({ type: "started", request_id });
      const onEvent = (event: KitEvent): void => queue.push(toFrameItem(event, encode));
      const asked = { signal, onStart, onEvent, principal: peer.principal?.id };
      return await inTraceOf({ traceparent, tracestate }, peer.request, () =>
        service.prompt({ ...target, session }, request, asked),
      );
    } finally {
      queue.end();
      await sent;
    }
  };

  const approve = (frame: ApproveFrame): void => {
    if (deciding >= limits.webSocketPrompts) throw tooMany("approvals", limits.webSocketPrompts);
    peer.count();
    deciding += 1;
    void decide(frame);
  };

  const decide = async ({ approval_id, approved, reason, args, request_id }: ApproveFrame): Promise<void> => {
    try {
      await authorization.check({ ...about, action: "agent.approve" });
      const decision = {
        approved,
        reason,
        args,
        by: principal?.id,
      };
      await decideCall(service, { ...target, approval_id }, decision);
      if (request_id !== undefined) connection.send({ type: "result", request_id, result: { approved } });
    } catch (error) {
      connection.sendError(error, request_id);
    } finally {
      deciding -= 1;
    }
  };

  // An instance with an open connection is not removed as an old one.
  const detach = service.sessions.attach(target);
  const leave = (): void => connection.close(closeCodes.goingAway, "The server is closing.");
  const abortAll = (message: string): void => {
    for (const controller of underWay.values()) controller.abort(new KitError({ code: "aborted", message }));
  };

  return {
    onFrame(frame) {
      switch (frame.type) {
        case "prompt":
          return accept(frame);
        case "abort":
          // A prompt that has ended in the meantime already has its answer.
          return underWay
            .get(frame.request_id)
            ?.abort(new KitError({ code: "aborted", message: "The client aborted the prompt." }));
        case "approve":
          return approve(frame);
        case "ping":
          return connection.send({ type: "pong" });
        case "invoke":
          throw misplacedFrame(frame.type);
      }
    },
    onClose() {
      detach();
      abortAll("The client has disconnected.");
    },
    finish() {
      closing = true;
      if (underWay.size === 0) leave();
    },
  };
}

function tooMany(what: string, limit: number): KitError {
  return new KitError({
    code: "too_many_requests",
    message: `${limit} ${what} are under way on this connection.`,
    meta: { retry_after_s: 1 },
  });
}
