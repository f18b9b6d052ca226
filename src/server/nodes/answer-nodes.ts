import type { IncomingMessage, ServerResponse } from "node:http";
import { aliveMs, type CarriedError, type Frame, nodesPath } from "../../app/cluster/node-calls.ts";
import { isNotBegun } from "../../app/cluster/node-client.ts";
import type { ServiceCluster } from "../../app/cluster/service-cluster.ts";
import { digestOf } from "../../app/cluster/signature.ts";
import { origins } from "../../app/runtime/observers.ts";
import { attempt } from "../../base/attempt.ts";
import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { toDelta } from "../../protocol/event-buffer.ts";
import { readTraceContext } from "../../protocol/tracing.ts";
import type { ReplyParts } from "../reply.ts";
import { tooLarge } from "../request/read-request.ts";
import { createFrameBuffer } from "../streams/event-streams.ts";

export interface NodeAnswersOptions {
  readonly cluster: ServiceCluster;
  /** The largest body; the calling node has already checked its own limits. */
  readonly bodyBytes: number;
  /** The most unread events of a prompt; beyond that, it is aborted. */
  readonly unreadBytes: number;
  readonly toReply: (error: unknown) => ReplyParts;
  /** Counts a request without a node's signature. */
  readonly onForged: (remoteAddress: string) => void;
  /** Receives internal errors. */
  readonly onError: (error: unknown) => void;
}

/** Answers the calls of other nodes of the cluster. */
export interface NodeAnswers {
  /** Whether a request claims to come from a node. */
  takes(incoming: IncomingMessage): boolean;
  answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void>;
}

/** The size of the JSON that a node adds around its client's request. */
const aroundBody = 65_536;

export function createNodeAnswers(options: NodeAnswersOptions): NodeAnswers {
  const refuse = (error: KitError, outgoing: ServerResponse): void => {
    const { status, headers, body } = options.toReply(error);
    outgoing.writeHead(status, { ...headers, connection: "close" }).end(body);
  };
  return {
    takes: ({ url = "" }) => url.startsWith(nodesPath),
    async answer(incoming, outgoing) {
      try {
        const { name, request } = await readCall(incoming, options);
        const trace = readTraceContext(header(incoming, "traceparent"), header(incoming, "tracestate"));
        const work = (): Promise<void> => perform({ name, request }, outgoing, options);
        await (trace === undefined ? work() : origins.run(trace, work));
      } catch (error) {
        if (outgoing.headersSent) outgoing.destroy();
        else refuse(error instanceof KitError ? error : notSigned(), outgoing);
      }
    },
  };
}

/** Reads the call of a node. Throws `forbidden` for a request without a node's signature, before it reads the body. */
async function readCall(
  incoming: IncomingMessage,
  { cluster, bodyBytes, onForged }: NodeAnswersOptions,
): Promise<{ readonly name: string; readonly request: unknown }> {
  const name = (incoming.url ?? "").slice(nodesPath.length);
  const call = {
    name,
    node: header(incoming, "kit-node") ?? "",
    at: Number(header(incoming, "kit-node-time")),
    digest: header(incoming, "kit-node-digest") ?? "",
    nonce: header(incoming, "kit-node-nonce") ?? "",
  };
  const signature = header(incoming, "kit-node-signature") ?? "";
  if (incoming.method !== "POST" || !(await cluster.isFromNode(call, signature))) {
    onForged(incoming.socket.remoteAddress ?? "");
    throw notSigned();
  }
  // The address of this node belonged to another node before, or the sender used its own "127.0.0.1".
  if (!cluster.isForMe(call.node)) throw new Misdirected();
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > 2 * bodyBytes + aroundBody) throw tooLarge(bodyBytes);
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks, length);
  if (digestOf(body) !== call.digest) throw notSigned();
  return { name, request: JSON.parse(body.toString("utf8")) };
}

async function perform(
  { name, request }: { readonly name: string; readonly request: unknown },
  outgoing: ServerResponse,
  { cluster, unreadBytes, onError }: NodeAnswersOptions,
): Promise<void> {
  const callerGone = new AbortController();
  const abort = (message: string): void => callerGone.abort(new KitError({ code: "aborted", message }));
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) abort("The client has disconnected.");
  });
  const answer = new Answer(outgoing);
  const queue = createFrameBuffer({
    maxLength: unreadBytes,
    onOverflow: () => abort("The client did not read fast enough."),
  });
  const sent = (async () => {
    for (let items = await queue.take(); items !== undefined; items = await queue.take())
      await answer.write(items.map((item) => (typeof item === "string" ? item : toEventLine(item))).join(""));
  })();
  const end = async (frame: Frame): Promise<void> => {
    queue.end();
    await sent;
    answer.end(frame);
  };
  try {
    const value = cluster.answer(name, request, {
      signal: callerGone.signal,
      onStart: () => void answer.write(toLine({ is: "start" })),
      onEvent: (event) => queue.push(toDelta(event) ?? toEventLine(event)),
      deliver: (event) => answer.write(toEventLine(event)),
    });
    // The call has its place in the line now.
    void answer.write(toLine({ is: "here" }));
    await end({ is: "result", value: await value });
  } catch (error) {
    if (isNotBegun(error)) await end({ is: "elsewhere" });
    else {
      if (!(error instanceof KitError)) onError(error);
      await end({ is: "error", error: toCarried(error) });
    }
  } finally {
    answer.stop();
  }
}

/** Writes the lines of one answer, and heartbeats. */
class Answer {
  readonly #outgoing: ServerResponse;
  readonly #timer: NodeJS.Timeout;
  #wasQuiet = false;

  constructor(outgoing: ServerResponse) {
    this.#outgoing = outgoing;
    outgoing.writeHead(200, { "content-type": "application/x-ndjson", "cache-control": "no-store" });
    this.#timer = setInterval(() => {
      if (this.#wasQuiet && !outgoing.writableNeedDrain) outgoing.write(toLine({ is: "alive" }));
      this.#wasQuiet = true;
    }, aliveMs / 2).unref();
  }

  /** Resolves when the other node can receive more, or has disconnected. */
  async write(text: string): Promise<void> {
    const outgoing = this.#outgoing;
    if (outgoing.destroyed || outgoing.writableEnded) return;
    this.#wasQuiet = false;
    if (outgoing.write(text)) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    outgoing.once("drain", resolve).once("close", resolve);
    await promise;
    outgoing.off("drain", resolve).off("close", resolve);
  }

  end(frame: Frame): void {
    if (!this.#outgoing.destroyed) this.#outgoing.end(toLine(frame));
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

function toLine(frame: Frame): string {
  return `${JSON.stringify(frame)}\n`;
}

function toEventLine(event: KitEvent): string {
  return `{"is":"event","event":${JSON.stringify(event)}}\n`;
}

function toCarried(error: unknown): CarriedError {
  if (!(error instanceof KitError)) {
    return { code: "internal_error", message: "Something went wrong inside kit." };
  }
  const { code, message, hint, meta } = error;
  return { code, message, ...defined({ hint, meta: toJson(meta) }) };
}

function toJson(meta: KitError["meta"]): KitError["meta"] {
  return attempt(() => (meta === undefined ? undefined : JSON.parse(JSON.stringify(meta))));
}

function header({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" ? value : undefined;
}

class Misdirected extends KitError {
  constructor() {
    super({ code: "unavailable", message: "This is another node.", meta: { retry_after_s: 1 } });
  }
}

function notSigned(): KitError {
  return new KitError({ code: "forbidden", message: "Only nodes of this cluster can call this route." });
}
