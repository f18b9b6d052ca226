import { KitError } from "../../base/kit-error.ts";
import type { Principal } from "../../protocol/access.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { PromptReply } from "../../protocol/prompt.ts";
import type { ServiceContext } from "../service-context.ts";
import { createFrameBuffer, encodeEvent, encodeOutcome, toFrameItem } from "./event-streams.ts";

/** How a prompt is begun: with who hears its events, and what aborts it. */
type Begin = (call: {
  readonly signal: AbortSignal;
  readonly onEvent: (event: KitEvent) => void;
}) => Promise<PromptReply>;

/**
 * A prompt that waits in line for longer than this has its stream begun: heartbeats then tell the
 * client that it is still there. Until then what is refused is refused with a status of its own.
 */
const patienceMs = 250;

/**
 * Answers a prompt with its events as they are made, and its result as the last of them. A client that
 * goes away, or reads so slowly that too much waits for it, fires the prompt's signal.
 */
export async function streamPrompt(
  { streams, limits, masked, toEnvelope }: ServiceContext,
  {
    gone,
    principal,
    outlives,
  }: {
    readonly gone: AbortSignal;
    readonly principal: Principal | undefined;
    /** Whether the prompt goes on without its client, which can ask for its reply again. */
    readonly outlives: boolean;
  },
  begin: Begin,
): Promise<Response> {
  const place = streams.reserve(principal);
  const controller = new AbortController();
  const abort = (): void => controller.abort(gone.aborted ? gone.reason : clientGone());
  gone.addEventListener("abort", abort, { once: true });
  const started = Promise.withResolvers<void>();
  const queue = createFrameBuffer({
    maxLength: limits.unreadBytes,
    onOverflow: () => controller.abort(tooSlow()),
  });
  const onEvent = (event: KitEvent): void => {
    queue.push(toFrameItem(event, encodeEvent));
    started.resolve();
  };
  const reply = begin({ signal: controller.signal, onEvent }).finally(() => queue.end());
  const timer = setTimeout(started.resolve, patienceMs);
  try {
    await Promise.race([started.promise, reply]);
  } catch (error) {
    place.release();
    throw error;
  } finally {
    clearTimeout(timer);
  }
  const source = async function* (): AsyncGenerator<string> {
    for (let items = await queue.take(); items !== undefined; items = await queue.take()) {
      let frames = "";
      for (const item of items) frames += typeof item === "string" ? item : encodeEvent(item);
      yield frames;
    }
    yield encodeOutcome("result", masked({ result: await reply }));
  };
  // A stream that the client leaves is not read to its end, where its failure would be met.
  reply.catch(() => undefined);
  const toLastChunk = (error: unknown): string => {
    const { aborted, reason } = controller.signal;
    return encodeOutcome("error", toEnvelope(aborted ? reason : error));
  };
  try {
    return streams.open(source(), { place, resumable: false, ends: outlives, onEnd: abort, toLastChunk });
  } catch (error) {
    place.release();
    abort();
    throw error;
  }
}

function clientGone(): KitError {
  return new KitError({ code: "aborted", message: "The client has gone." });
}

function tooSlow(): KitError {
  return new KitError({ code: "aborted", message: "The client did not read fast enough." });
}
