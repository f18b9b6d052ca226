import { KitError } from "../../base/kit-error.ts";
import { type KitFault, toOpenAiError } from "../../interfaces/openai/error.ts";
import type { ServiceAction } from "../../protocol/access.ts";
import { errorCodes, isErrorCode, isRetryableError } from "../../protocol/error-code.ts";
import type { ErrorEnvelope } from "../../protocol/errors.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { RouteRequest } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";

/** An accepted request of a model client. */
export interface OpenAiWork extends SessionKey {
  readonly operation_id: string;
  /** ISO 8601. */
  readonly acceptedAt: string;
  /** The index of the event at which calls of the caller waited, if the request brings their results. */
  readonly after?: number | undefined;
}

export interface OpenAiStream {
  /** Absent if there is nothing to follow. */
  readonly work?: OpenAiWork;
  /** The index of the last event that the client has. */
  readonly after?: number;
  readonly fold: { readonly isOver: boolean };
  /** Encodes the events. */
  readonly frames: (events: AsyncIterable<KitEvent>) => AsyncIterable<string>;
}

export interface OpenAiStreamOptions {
  /** Required of the sender as long as the stream is open. */
  readonly action: ServiceAction;
  /** Whether a client that disconnects ends the work. Otherwise it can come back, and a stream that the server ends breaks off. */
  readonly endsWithClient: boolean;
  /** Accepts the work, once there is room for its stream. */
  readonly open: () => Promise<OpenAiStream>;
  /** Encodes an error as the end of a stream; default: as OpenAI does. */
  readonly toLastFrames?: (envelope: ErrorEnvelope) => string;
}

/** Answers with an operation as frames, to its end. */
export async function streamFrames(
  { service, streams, authorization, toEnvelope }: ServiceContext,
  { principal, incoming }: Pick<RouteRequest, "principal" | "incoming">,
  { action, endsWithClient, open, toLastFrames = errorFrames }: OpenAiStreamOptions,
): Promise<Response> {
  const controller = new AbortController();
  const slot = streams.reserve(principal);
  try {
    const { work, after = 0, fold, frames } = await open();
    const events = work && (await service.followOperation(work, { after, signal: controller.signal }));
    const permit = authorization.whilePermitted({
      principal,
      action,
      agent: work?.agent,
      instance: work?.instance_id,
    });
    const permitted = async function* (): AsyncGenerator<KitEvent> {
      if (events === undefined) return;
      for await (const event of events) {
        await permit();
        yield event;
      }
    };
    const source = async function* (): AsyncGenerator<string> {
      for await (const frame of frames(permitted())) if (frame !== "") yield frame;
    };
    return streams.open(source(), {
      slot,
      resumable: !endsWithClient,
      breakOff: () => incoming?.socket.destroy() !== undefined,
      onEnd() {
        controller.abort();
        if (endsWithClient && work && !fold.isOver) service.abort(work).catch(() => undefined);
      },
      toLastChunk(error) {
        // The client takes the response up again.
        if (!endsWithClient && error instanceof KitError && isRetryableError(error)) return undefined;
        return toLastFrames(toEnvelope(error));
      },
    });
  } catch (error) {
    slot.release();
    controller.abort();
    throw error;
  }
}

export function dataFrame(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/** The end of a stream without an answer. Both interfaces of OpenAI's client throw for `error` in a frame. */
export function errorFrames(envelope: KitFault): string {
  const { type } = envelope.error;
  const { status } = errorCodes[isErrorCode(type) ? type : "internal_error"];
  return `${dataFrame(toOpenAiError(envelope, status))}data: [DONE]\n\n`;
}
