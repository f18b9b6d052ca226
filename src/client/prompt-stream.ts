import type { PromptReply } from "../protocol/prompt.ts";
import type { WorkOptions } from "./call-options.ts";
import { follow } from "./follow.ts";
import { createResultStream, type ResultStream } from "./result-stream.ts";
import type { Transport } from "./transport.ts";

/** A prompt under way; its result is what `invoke` gives. */
export type PromptStream = ResultStream<PromptReply>;

/** A prompt by a route that answers with its events. */
export function promptStream(
  transport: Transport,
  call: { readonly path: readonly string[]; readonly body: unknown; readonly options: WorkOptions },
): PromptStream {
  return createResultStream(
    follow(transport, { ...call, method: "POST" }),
    (body) => (body as { readonly result: PromptReply }).result,
  );
}
