import type { PromptReply } from "../protocol/prompt.ts";
import { follow } from "./follow.ts";
import { inTime } from "./in-time.ts";
import { createResultStream, type ResultStream } from "./result-stream.ts";
import type { RouteCall } from "./route-call.ts";
import type { Transport } from "./transport.ts";

/** A prompt under way; its result is what `invoke` gives. */
export type PromptStream = ResultStream<PromptReply>;

/** A call of a route that prompts, and can answer with events. */
type PromptCall = RouteCall<{ readonly result: PromptReply }>;

export function promptStream(transport: Transport, call: PromptCall): PromptStream {
  return createResultStream(
    follow(transport, call),
    (body) => (body as { readonly result: PromptReply }).result,
  );
}

/**
 * Waits for the answer of a prompt. Over a stream, too: an answer that takes minutes would else be a
 * connection that says nothing, which proxies, and Node's own `fetch` after five of them, cut.
 */
export async function promptReply(transport: Transport, call: PromptCall): Promise<PromptReply> {
  const { timeoutMs, signal } = call.options ?? {};
  return await inTime(timeoutMs, [signal], (limited) =>
    promptStream(transport, { ...call, options: { ...call.options, signal: limited } }).result(),
  );
}
