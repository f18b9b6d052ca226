import { randomUUID } from "node:crypto";
import { Agent, type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps, Agent as SecureAgent } from "node:https";
import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import { type ClusterNode, type EngineCluster, NotBegun } from "../../engine/cluster.ts";
import { origins } from "../runtime/observers.ts";
import {
  type AnswerOf,
  type AskedBy,
  aliveMs,
  type CallListeners,
  type CallName,
  type CarriedError,
  type Frame,
  nodesPath,
} from "./node-calls.ts";
import { digestOf, signCall } from "./signature.ts";

/** The node was not reached, so it has started nothing. */
export class Unreached extends NotBegun {}

/** The connection to the node was lost after it had accepted the call: the caller cannot know what the node has done. */
export class NodeLost extends KitError<"unavailable"> {
  constructor() {
    super({
      code: "unavailable",
      message: "The machine that worked on this has stopped or cannot be reached. Try again.",
      hint: "Another machine finishes prompts with an Idempotency-Key.",
      meta: { retry_after_s: 1 },
    });
  }
}

/** Whether the call can be sent to another node, because nothing has started. */
export function isNotBegun(error: unknown): boolean {
  return error instanceof NotBegun;
}

/** The time limit for a connection within the machines' network. */
const connectMs = 2_000;
/** After this silence, the client asks the database whether the node is alive. */
const doubtMs = 2 * aliveMs;
const watchMs = 500;

type Headers = Readonly<Record<string, string | number>>;

/** A running call, for the check of silent nodes. */
interface Watched {
  /** The time of the last data, by `performance.now`; undefined while the caller is slow to read. */
  waitsSince: number | undefined;
  readonly isThere: () => Promise<boolean>;
  lose(): void;
  isAsking: boolean;
}

/** Calls other nodes over kept-alive connections. */
export class NodeClient {
  readonly #cluster: EngineCluster;
  readonly #agents = { "http:": keptAgent(Agent), "https:": keptAgent(SecureAgent) };
  readonly #watched = new Set<Watched>();
  readonly #silenceMs: number;
  #timer: NodeJS.Timeout | undefined;

  /** After `silenceMs` without data, a node counts as lost even if the database says that it is alive: the network can be cut. */
  constructor(
    cluster: EngineCluster,
    { silenceMs = 10_000 }: { readonly silenceMs?: number | undefined } = {},
  ) {
    this.#cluster = cluster;
    this.#silenceMs = silenceMs;
  }

  /** Returns the answer. Throws the error of the call, `NotBegun` if it has not started, and `NodeLost`. */
  async ask<Name extends CallName>(
    node: ClusterNode,
    call: { readonly name: Name; readonly request: AskedBy<Name>; readonly signal?: AbortSignal | undefined },
    listeners: Partial<Pick<CallListeners, "onStart" | "onEvent">> & { readonly onTaken?: () => void } = {},
  ): Promise<AnswerOf<Name>> {
    for await (const frame of this.frames(node, call)) {
      if (frame.is === "result") return frame.value as AnswerOf<Name>;
      if (frame.is === "event") listeners.onEvent?.(frame.event);
      else if (frame.is === "start") listeners.onStart?.();
      else if (frame.is === "here") listeners.onTaken?.();
    }
    throw new NodeLost();
  }

  /** Yields the lines of an answer as they arrive; the other node waits for a slow caller. */
  async *frames<Name extends CallName>(
    node: ClusterNode,
    call: { readonly name: Name; readonly request: AskedBy<Name>; readonly signal?: AbortSignal | undefined },
  ): AsyncGenerator<Frame> {
    const { signal } = call;
    const body = JSON.stringify(call.request);
    const headers = await this.#headersOf(node, call.name, body);
    signal?.throwIfAborted();
    const sent = this.#send(node, { name: call.name, body, headers });
    const stop = (): void => void sent.destroy();
    signal?.addEventListener("abort", stop, { once: true });
    const watched: Watched = {
      waitsSince: performance.now(),
      isAsking: false,
      isThere: async () => (await this.#cluster.nodes()).some((member) => member.node === node.node),
      lose: () => sent.destroy(new NodeLost()),
    };
    this.#watch(watched);
    let reply: IncomingMessage | undefined;
    try {
      reply = await replyOf(sent);
      if (reply.statusCode !== 200) throw refusalOf(node, reply);
      for await (const frame of readFrames(reply, watched)) {
        if (frame.is === "elsewhere") throw new NotBegun();
        if (frame.is === "error") throw toError(frame.error);
        if (frame.is !== "alive") yield frame;
        if (frame.is === "result") return;
      }
      throw new NodeLost();
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      throw error instanceof KitError ? error : new NodeLost();
    } finally {
      signal?.removeEventListener("abort", stop);
      this.#watched.delete(watched);
      // Keep a connection after a complete answer.
      if (reply?.complete === true) reply.resume();
      else sent.destroy();
    }
  }

  close(): void {
    clearInterval(this.#timer);
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  async #headersOf(node: ClusterNode, name: string, body: string): Promise<Headers> {
    const at = this.#cluster.now();
    const digest = digestOf(body);
    const nonce = randomUUID();
    const { traceparent, tracestate } = origins.getStore() ?? {};
    return {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      "kit-node": node.node,
      "kit-node-time": at,
      "kit-node-digest": digest,
      "kit-node-nonce": nonce,
      "kit-node-signature": signCall(await this.#cluster.secret(), {
        name,
        node: node.node,
        at,
        digest,
        nonce,
      }),
      ...defined({ traceparent, tracestate }),
    };
  }

  #send(
    { address = "" }: ClusterNode,
    { name, body, headers }: { readonly name: string; readonly body: string; readonly headers: Headers },
  ): ClientRequest {
    const url = new URL(`${address.replace(/\/$/, "")}${nodesPath}${name}`);
    const isSecure = url.protocol === "https:";
    const agent = this.#agents[isSecure ? "https:" : "http:"];
    const sent = (isSecure ? requestHttps : requestHttp)(url, { method: "POST", agent, headers });
    sent.once("socket", (socket) => {
      if (!socket.connecting) return;
      const timer = setTimeout(() => sent.destroy(new Unreached()), connectMs);
      socket.once("connect", () => clearTimeout(timer)).once("close", () => clearTimeout(timer));
    });
    return sent.end(body);
  }

  /** One timer checks all calls. A frozen node keeps its connections open and sends nothing. */
  #watch(watched: Watched): void {
    this.#watched.add(watched);
    this.#timer ??= setInterval(() => {
      if (this.#watched.size === 0) {
        clearInterval(this.#timer);
        this.#timer = undefined;
      }
      // Check after the sockets were read: data can wait there if this process itself was frozen.
      setImmediate(() => {
        for (const each of this.#watched) this.#check(each);
      });
    }, watchMs).unref();
  }

  #check(watched: Watched): void {
    const { waitsSince } = watched;
    const silence = waitsSince === undefined ? 0 : performance.now() - waitsSince;
    if (silence > this.#silenceMs) watched.lose();
    else if (silence > doubtMs && !watched.isAsking) {
      watched.isAsking = true;
      watched
        .isThere()
        .then(
          (isThere) => isThere || watched.lose(),
          () => undefined,
        )
        .finally(() => {
          watched.isAsking = false;
        });
    }
  }
}

function keptAgent(Kind: typeof Agent | typeof SecureAgent): Agent {
  return new Kind({ keepAlive: true });
}

/** Resolves with the head of an answer. The reader of the answer gets later errors. */
async function replyOf(sent: ClientRequest): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  sent
    .once("response", resolve)
    .on("error", (error) => reject(toUnreached(error, sent)))
    .once("close", () => reject(new NodeLost()));
  return await promise;
}

/** Yields lines; at most one chunk is buffered. */
async function* readFrames(reply: IncomingMessage, watched: Watched): AsyncGenerator<Frame> {
  reply.setEncoding("utf8");
  const chunks: string[] = [];
  let isOver = false;
  let wake = (): void => undefined;
  const onOver = (): void => {
    isOver = true;
    wake();
  };
  const onData = (chunk: string): void => {
    chunks.push(chunk);
    reply.pause();
    wake();
  };
  reply.on("data", onData).on("error", onOver).once("end", onOver).once("close", onOver);
  let rest = "";
  try {
    for (;;) {
      const chunk = chunks.shift();
      if (chunk === undefined) {
        if (isOver) return;
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        watched.waitsSince = performance.now();
        reply.resume();
        await promise;
        watched.waitsSince = undefined;
        continue;
      }
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) yield JSON.parse(line) as Frame;
    }
  } finally {
    reply.off("data", onData);
  }
}

/** Whether the connection failed, or the other side had closed it before its reuse. */
function toUnreached(error: unknown, sent: ClientRequest): unknown {
  if (error instanceof KitError) return error;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const isUnused = sent.reusedSocket && (code === "ECONNRESET" || code === "EPIPE");
  return isUnused || unconnected.has(code) ? new Unreached() : new NodeLost();
}

const unconnected = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EADDRNOTAVAIL",
  "ETIMEDOUT",
]);

/** Creates the error for a server that does not accept calls of this node. */
function refusalOf({ address, host }: ClusterNode, reply: IncomingMessage): KitError {
  const { statusCode = 0 } = reply;
  // Another process of the cluster has this address now, or the node is about to end.
  if (statusCode === 421 || statusCode === 503) return new Unreached();
  return new KitError({
    code: "unavailable",
    message: "The machine that owns this does not accept calls of this machine.",
    hint: `${host} says that it is reached at ${address}, where the answer was ${statusCode}. Set KIT_NODE_ADDRESS there, and run the same kit on both.`,
    meta: { retry_after_s: 5 },
  });
}

function toError({ code, message, hint, meta }: CarriedError): KitError {
  return new KitError({ code, message, ...defined({ hint, meta }) });
}
