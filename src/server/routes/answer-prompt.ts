import type { PromptRequest } from "../../protocol/prompt.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { principalOf } from "../instance-request.ts";
import { readIdempotencyKey } from "../request/read-headers.ts";
import type { RouteRequest } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";
import { streamPrompt } from "../stream/prompt-stream.ts";
import { wantsEvents } from "../stream/server-sent-events.ts";

export interface Prompt {
  readonly key: SessionKey;
  readonly request: PromptRequest;
  /** Whether the answer is a stream whatever the client accepts. */
  readonly streams?: boolean;
}

/** Prompts a session, and answers with its reply or with its events. */
export async function answerPrompt(
  context: ServiceContext,
  input: RouteRequest,
  { key, request, streams = wantsEvents(input.accept) }: Prompt,
): Promise<unknown> {
  const { service } = context;
  const idempotencyKey = readIdempotencyKey(input);
  const keyed = {
    // Under a key the prompt outlives its client, who can ask again for the same reply.
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...principalOf(input),
  };
  if (!streams) {
    const signal = input.untilGone({ silent: true });
    return { result: await service.prompt(key, request, { ...keyed, signal }) };
  }
  return streamPrompt(context, { gone: input.untilGone(), principal: input.principal }, (call) =>
    service.prompt(key, request, { ...keyed, ...call }),
  );
}
