import type { InstanceTarget } from "../../app/service/service.ts";
import { KitError } from "../../base/kit-error.ts";
import type { Principal } from "../../protocol/access.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { toDelta } from "../../protocol/event-buffer.ts";
import type { ClientFrame, ServerFrame } from "../../protocol/socket-frame.ts";
import { actionOn, decideCall } from "../routes/approvals.ts";
import { checkAgent, type ServiceContext } from "../service-context.ts";
import { createFrameBuffer } from "../streams/event-streams.ts";
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
  peer: { readonly context: ServiceContext; readonly peer: ConnectionPeer },
): FrameHandler {
  return new AgentFrames(connection, target, peer);
}

class AgentFrames implements FrameHandler {
  readonly #connection: Connection;
  readonly #target: InstanceTarget;
  readonly #context: ServiceContext;
  readonly #peer: ConnectionPeer;
  /** Releases the instance, which is not removed as an old one while a connection is open. */
  readonly #detach: () => void;
  /** The running prompts by `request_id`. */
  readonly #running = new Map<string, AbortController>();
  /** Resolves once every earlier prompt has its place in the line of its session, or was refused. */
  #placed: Promise<unknown> = Promise.resolve();
  /** Approvals in progress. */
  #deciding = 0;
  #isClosing = false;

  constructor(
    connection: Connection,
    target: InstanceTarget,
    { context, peer }: { readonly context: ServiceContext; readonly peer: ConnectionPeer },
  ) {
    this.#connection = connection;
    this.#target = target;
    this.#context = context;
    this.#peer = peer;
    this.#detach = context.service.sessions.attach(target);
  }

  onFrame(frame: ClientFrame): void {
    switch (frame.type) {
      case "prompt":
        this.#accept(frame);
        return;
      case "abort":
        this.#abort(frame.request_id, "The client aborted the prompt.");
        return;
      case "approve":
        this.#approve(frame);
        return;
      case "ping":
        this.#connection.send({ type: "pong" });
        return;
      case "invoke":
        throw misplacedFrame(frame.type);
    }
  }

  onClose(): void {
    this.#detach();
    for (const requestId of this.#running.keys()) this.#abort(requestId, "The client has disconnected.");
  }

  finish(): void {
    this.#isClosing = true;
    this.#leaveWhenDone();
  }

  /** Aborts a running prompt; one that has ended in the meantime already has its answer. */
  #abort(requestId: string, message: string): void {
    this.#running.get(requestId)?.abort(new KitError({ code: "aborted", message }));
  }

  #leaveWhenDone(): void {
    if (this.#isClosing && this.#running.size === 0)
      this.#connection.close(closeCodes.goingAway, "The server is closing.");
  }

  async #permit(action: "agent.prompt" | "agent.approve" | "agent.omit_rules" | "agent.read"): Promise<void> {
    const { agent, instance_id: instance } = this.#target;
    await this.#context.authorization.check({ principal: this.#peer.principal, agent, instance, action });
  }

  #accept(frame: PromptFrame): void {
    const { request_id } = frame;
    const limit = this.#context.limits.webSocketPrompts;
    if (this.#isClosing) throw new KitError({ code: "unavailable", message: "The server is closing." });
    if (this.#running.has(request_id)) {
      throw new KitError({ code: "conflict", message: "A request with this request_id is under way." });
    }
    if (this.#running.size >= limit) throw tooMany("prompts", limit);
    this.#peer.count();
    const controller = new AbortController();
    this.#running.set(request_id, controller);
    // Permissions are checked concurrently; prompts join the line in the order of their frames.
    const omitsRules = (frame.omit_rules ?? []).length > 0;
    const mayBegin = Promise.all([
      this.#permit("agent.prompt"),
      omitsRules ? this.#permit("agent.omit_rules") : undefined,
      frame.fork === undefined ? undefined : this.#permit("agent.read"),
      this.#placed,
    ]);
    void this.#answer(frame, controller, mayBegin);
    // Without the outcomes: each would contain those of all prompts before.
    this.#placed = Promise.allSettled([this.#placed, mayBegin]).then(() => undefined);
  }

  async #answer(frame: PromptFrame, controller: AbortController, mayBegin: Promise<unknown>): Promise<void> {
    const { request_id } = frame;
    try {
      await mayBegin;
      controller.signal.throwIfAborted();
      // The agent's file can have changed since the connection was opened.
      checkAgent(this.#context, this.#target.agent);
      const result = await this.#perform(frame, controller);
      this.#connection.send({ type: "result", request_id, result });
    } catch (error) {
      this.#connection.sendError(controller.signal.aborted ? controller.signal.reason : error, request_id);
    } finally {
      this.#running.delete(request_id);
      this.#leaveWhenDone();
    }
  }

  async #perform(
    { type: _, request_id, session = "default", traceparent, tracestate, ...request }: PromptFrame,
    controller: AbortController,
  ): Promise<unknown> {
    const { service, limits } = this.#context;
    const { principal, request: handshake } = this.#peer;
    const connection = this.#connection;
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
      const onEvent = (event: KitEvent): void => queue.push(toDelta(event) ?? encode(event));
      const callOptions = { signal, onStart, onEvent, principal: principal?.id };
      return await inTraceOf({ traceparent, tracestate }, handshake, () =>
        service.prompt({ ...this.#target, session }, request, callOptions),
      );
    } finally {
      queue.end();
      await sent;
    }
  }

  #approve(frame: ApproveFrame): void {
    const limit = this.#context.limits.webSocketPrompts;
    if (this.#deciding >= limit) throw tooMany("approvals", limit);
    this.#peer.count();
    this.#deciding += 1;
    void this.#decide(frame);
  }

  async #decide({ approval_id, request_id, type: _, ...decision }: ApproveFrame): Promise<void> {
    try {
      await this.#permit(actionOn(approval_id));
      const by = this.#peer.principal?.id;
      await decideCall(this.#context.service, { ...this.#target, approval_id }, { ...decision, by });
      const { approved } = decision;
      if (request_id !== undefined)
        this.#connection.send({ type: "result", request_id, result: { approved } });
    } catch (error) {
      this.#connection.sendError(error, request_id);
    } finally {
      this.#deciding -= 1;
    }
  }
}

function tooMany(requests: string, limit: number): KitError {
  return new KitError({
    code: "too_many_requests",
    message: `${limit} ${requests} are under way on this connection.`,
    meta: { retry_after_s: 1 },
  });
}
