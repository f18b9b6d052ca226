import type { InstanceTarget } from "../../app/service/service.ts";
import { KitError } from "../../base/kit-error.ts";
import { UiFold } from "../../interfaces/ai-sdk/fold.ts";
import type { OpenWork } from "../../interfaces/ai-sdk/open-work.ts";
import type { ServiceAction } from "../../protocol/access.ts";
import { isRetryableError } from "../../protocol/error-code.ts";
import type { UiChunk } from "../../protocol/ui.ts";
import type { RouteRequest } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";

export interface UiStreamOptions {
  /** Required of the sender as long as the stream is open. */
  readonly action: ServiceAction;
  /** The index of the last event that the page has. */
  readonly after?: number | undefined;
  /** Whether the page goes on with a stream that broke off, and so has its first chunk. */
  readonly isContinued?: boolean;
  /** Runs before the stream opens, once it is known that there is an operation. */
  readonly begin?: () => Promise<void>;
}

/**
 * Answers with an operation as a UI message stream: until the operation ends, or rests because a person has to decide. A
 * stream that the server has to end earlier breaks off, because a page takes a clean end for the end of the answer.
 */
export async function streamUi(
  { service, streams, authorization, toEnvelope }: ServiceContext,
  { principal, incoming }: Pick<RouteRequest, "principal" | "incoming">,
  {
    target,
    ...options
  }: UiStreamOptions & { readonly target: InstanceTarget & { readonly operation_id: string } },
): Promise<Response> {
  const { action, after = 0, isContinued = false, begin } = options;
  const controller = new AbortController();
  const { operation_id, agent, instance_id: instance } = target;
  const slot = streams.reserve(principal);
  try {
    const events = await service.followOperation(target, { after, signal: controller.signal });
    await begin?.();
    const permit = authorization.whilePermitted({ principal, action, agent, instance });
    const fold = new UiFold(operation_id);
    const source = async function* (): AsyncGenerator<string> {
      if (!isContinued) yield toFrames([fold.start()], { index: 0 });
      for await (const event of events) {
        const chunks = fold.push(event);
        const { index } = event;
        const isOver = event.type === "operation" && event.operation_id === operation_id;
        if (index <= after && !isOver) continue;
        await permit();
        const isResting = fold.work.awaited.length > 0 && (await restsNow(service, target, fold.work));
        const isEnd = isOver || isResting;
        const last = isResting ? fold.handOver(event) : [];
        if (isEnd || chunks.length > 0) yield toFrames([...chunks, ...last], { index, isEnd });
        if (isEnd) return;
      }
      yield toFrames(fold.endUnbegun(), { index: after, isEnd: true });
    };
    const reply = streams.open(source(), {
      slot,
      resumable: true,
      breakOff: () => incoming?.socket.destroy() !== undefined,
      onEnd: () => controller.abort(),
      toLastChunk: (error) => {
        // The page tries again.
        if (error instanceof KitError && isRetryableError(error)) return undefined;
        return toFrames([{ type: "error", errorText: toEnvelope(error).error.message }], {
          index: 0,
          isEnd: true,
        });
      },
    });
    reply.headers.set("x-vercel-ai-ui-message-stream", "v1");
    return reply;
  } catch (error) {
    slot.release();
    controller.abort();
    throw error;
  }
}

/**
 * Whether the operation rests. A call can be decided before its event is emitted: one that can no longer be decided after its event
 * goes on, and its next events follow.
 */
export async function restsNow(
  { approvals }: ServiceContext["service"],
  { agent, instance_id }: InstanceTarget,
  { awaited }: OpenWork,
): Promise<boolean> {
  if (awaited.length === 0) return false;
  const open = await approvals.list({ agent, instance_id });
  return awaited.every((id) => open.some(({ approval_id }) => approval_id === id));
}

/**
 * Encodes the chunks of an event. Only the last frame has the position: a page that has lost one of them asks for all of them
 * again, and drops those that it has.
 */
function toFrames(
  chunks: readonly UiChunk[],
  { index, isEnd = false }: { readonly index: number; readonly isEnd?: boolean },
): string {
  const texts = [...chunks.map((chunk) => JSON.stringify(chunk)), ...(isEnd ? ["[DONE]"] : [])];
  return texts
    .map((text, at) => `${at === texts.length - 1 ? `id: ${index}\n` : ""}data: ${text}\n\n`)
    .join("");
}
