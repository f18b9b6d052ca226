import type { PromptReply } from "../protocol/prompt.ts";
import type { WorkOptions } from "./call-options.ts";
import { follow } from "./follow.ts";
import { inTime } from "./in-time.ts";
import { createResultStream, type ResultStream } from "./result-stream.ts";
import type { Transport } from "./transport.ts";

/** A prompt under way; its result is what `invoke` gives. */
export type PromptStream = ResultStream<PromptReply>;

interface PromptCall {
  /** Of a route that answers with events. */
  readonly path: readonly string[];
  readonly body: unknown;
  readonly options: WorkOptions;
}

export function promptStream(transport: Transport, call: PromptCall): PromptStream {
  return createResultStream(
    follow(transport, { ...call, method: "POST" }),
    (body) => (body as { readonly result: PromptReply }).result,
  );
}

/**
 * Waits for the answer of a prompt. Over a stream, too: an answer that takes minutes would else be a
 * connection that says nothing, which proxies, and Node's own `fetch` after five of them, cut.
 */
export async function promptReply(transport: Transport, call: PromptCall): Promise<PromptReply> {
  const { timeoutMs, signal } = call.options;
  return await inTime(timeoutMs, [signal], (limited) =>
    promptStream(transport, { ...call, options: { ...call.options, signal: limited } }).result(),
  );
}
