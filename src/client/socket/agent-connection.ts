import { createId } from "../../base/id.ts";
import type { ApprovalBody } from "../../protocol/approval.ts";
import type { PromptBody, PromptReply } from "../../protocol/prompt.ts";
import type { CallOptions } from "../call-options.ts";
import type { StreamItem } from "../read-stream.ts";
import { createPromptStream, createResultStream, type PromptStream } from "../result-stream.ts";
import { route } from "../route-call.ts";
import { connectionClosed } from "../to-kit-error.ts";
import type { Transport } from "../transport.ts";
import { openSocket, type Socket } from "./open-socket.ts";

// Projects for browsers need not list this library in their tsconfig.
/// <reference lib="esnext.disposable" preserve="true" />

/**
 * A WebSocket to an instance for several prompts: those of one session run in their order, others concurrently.
 *
 * If the connection breaks, running prompts fail with `unavailable` and are
 * aborted by the server. The next prompt opens a new one.
 */
export interface AgentConnection<Result = unknown> extends AsyncDisposable {
  /** Sends a prompt when the stream is first read. Leaving the stream early, or the signal, aborts the prompt. */
  prompt(
    prompt: string | PromptBody,
    options?: { readonly signal?: AbortSignal | undefined },
  ): PromptStream<Result>;
  /** Approves or denies a tool call. */
  approve(decision: ApprovalBody & { readonly approval_id: string }): Promise<void>;
  /** Resolves when the server answers. */
  ping(): Promise<void>;
  /** Closes the connection: running and later prompts fail with `aborted`. */
  close(): void;
}

interface AgentTarget {
  readonly name: string;
  readonly id: string;
  readonly defaults: { readonly session?: string | undefined };
  readonly options: CallOptions;
}

export async function connectAgent(
  transport: Transport,
  { name, id, defaults, options }: AgentTarget,
): Promise<AgentConnection> {
  const params = { name, id };
  const target = {
    path: route("POST /agents/{name}/{id}", { params, body: { message: "" } }).path,
    options,
    explainRefusal: () => transport.request("GET /agents/{name}/{id}/approvals", { params }),
  };
  let socket: Socket | undefined = await openSocket(transport, target);
  let opening: Promise<Socket> | undefined;
  let closed = false;

  async function current(): Promise<Socket> {
    if (closed) throw connectionClosed();
    if (socket?.isOpen === true) return socket;
    const { timeoutMs } = target.options;
    opening ??= openSocket(transport, { ...target, options: { timeoutMs } });
    try {
      socket = await opening;
    } finally {
      opening = undefined;
    }
    if (closed) socket.close();
    return socket;
  }

  async function* ask(body: PromptBody, signal?: AbortSignal): AsyncGenerator<StreamItem, void> {
    const asked = { ...defaults, ...body, ...transport.trace() };
    const frame = { type: "prompt", request_id: createId("req"), ...asked } as const;
    yield* (await current()).ask({ frame, abortOnLeave: true, signal });
  }

  function close(): void {
    closed = true;
    socket?.close();
  }

  return {
    prompt: (prompt, { signal } = {}) =>
      createPromptStream(
        ask(typeof prompt === "string" ? { message: prompt } : prompt, signal),
        (result) => result as PromptReply,
      ),
    async approve(decision) {
      const frame = { type: "approve", request_id: createId("req"), ...decision } as const;
      const items = (await current()).ask({ frame, abortOnLeave: false });
      await createResultStream(items, () => undefined).result();
    },
    ping: async () => await (await current()).ping(),
    close,
    async [Symbol.asyncDispose]() {
      close();
    },
  };
}
