import type { InstanceTarget } from "../../app/service/service.ts";
import { agentStream } from "../../engine/contract.ts";
import type { ConnectionSlot } from "../access/connection-slots.ts";
import type { ServiceContext } from "../service-context.ts";
import { encodeEvent, encodeOutcome, encodePosition, positionReset } from "./event-streams.ts";

export interface InstanceStreamOptions {
  readonly after?: number | "now" | undefined;
  readonly session?: string | undefined;
  /** Whether `after` is where an earlier stream ended. */
  readonly resumes: boolean;
  readonly place: ConnectionSlot;
  /** Throws when the instance may not be read any more. */
  readonly permit: () => Promise<void>;
}

/** Answers with the events of an instance, for as long as the client listens and the instance is there. */
export function streamInstance(
  { service, streams, toEnvelope }: ServiceContext,
  target: InstanceTarget,
  { place, permit, resumes, after: position, ...options }: InstanceStreamOptions,
): Response {
  const controller = new AbortController();
  const { signal } = controller;
  const { events } = service.engine;
  const stream = agentStream(target.agent, target.instance_id);
  const source = async function* (): AsyncGenerator<string> {
    const after = position === "now" ? await events.last(stream) : position;
    // A reader whose connection breaks before the first event goes on from here.
    if (position === "now" && after !== undefined) yield encodePosition(after);
    // Behind its end, it is a position in the stream of an instance that was deleted since.
    const isGone = resumes && after !== undefined && after > (await events.last(stream));
    if (isGone) yield positionReset;
    const from = isGone || after === undefined ? {} : { after };
    for await (const event of service.events(target, { ...options, ...from, signal })) {
      await permit();
      yield encodeEvent(event);
    }
    // The instance was deleted, or the log has closed. Indexes begin anew with an instance that comes
    // again: whoever went on where this stream ends would miss its first events.
    const logIsOpen = await events.last(stream).then(
      () => true,
      () => false,
    );
    if (logIsOpen) yield positionReset;
  };
  return streams.open(source(), {
    place,
    resumable: true,
    onEnd: () => controller.abort(),
    toLastChunk: (error) => encodeOutcome("error", toEnvelope(error)),
  });
}
