import { longestTimerMs, systemClock } from "../base/clock.ts";
import type { KitEvent } from "../protocol/event.ts";
import { streamHeader } from "../protocol/routes/route.ts";
import { anyOf, timedOut } from "./in-time.ts";
import { isKnownEvent, readStream, type StreamItem } from "./read-stream.ts";
import type { Call } from "./route-call.ts";
import {
  connectionLost,
  fromEnvelope,
  isRefusal,
  isTransient,
  notAnAnswer,
  toOutage,
} from "./to-kit-error.ts";
import { backoff, delayBefore, isRepeatable, type Transport } from "./transport.ts";

/**
 * Yields a stream to its end. If the connection breaks, or the server ends the stream because its store is unavailable, it
 * reconnects after the last event, so that no event is lost or repeated, or at the beginning if the server reports that the
 * instance was deleted. A stream that cannot be requested twice fails instead. It skips events of unknown types. After the
 * number of consecutive failures that the retry policy allows (more of them once the stream has started), it throws the last
 * error.
 */
export async function* follow(
  transport: Transport,
  call: Call & { readonly after?: number | undefined },
): AsyncGenerator<StreamItem, void> {
  const { retry, idleTimeoutMs } = transport;
  const startBy = performance.now() + (call.options?.timeoutMs ?? transport.timeoutMs);
  let { after } = call;
  // The id of the instance's stream to which `after` belongs.
  let stream: string | undefined;
  let failures = 0;
  // How many consecutive attempts can fail. The error that breaks a started stream does not count as an attempt.
  let most = retry.attempts - 1;
  let hasStarted = false;
  let mayHaveBegun = false;
  // Consecutive connections without an event: the delay before the next one grows.
  let quiet = 0;
  const leaving = new AbortController();
  const signal = anyOf([transport.signal, call.options?.signal, leaving.signal]);
  try {
    for (;;) {
      let delayMs: number | undefined;
      try {
        const response = await connect(transport, resumeAt(call, after, stream), signal);
        if (response.status === 204) return;
        stream = response.headers.get(streamHeader) ?? undefined;
        failures = 0;
        most = retry.reconnects;
        hasStarted = true;
        mayHaveBegun = true;
        for await (const item of readStream(response, idleTimeoutMs)) {
          quiet = 0;
          if (item.kind === "reset") {
            after = undefined;
            continue;
          }
          if (item.kind === "position") {
            after = item.index;
            continue;
          }
          if (item.kind === "event") {
            if (item.event.index <= (after ?? 0)) continue;
            after = item.event.index;
            if (!isKnownEvent(item.event)) continue;
          }
          const outage = item.kind === "failure" && isRepeatable(call) ? toOutage(item.body) : undefined;
          if (outage !== undefined) throw outage;
          yield item;
          if (item.kind !== "event") return;
        }
        signal.throwIfAborted();
        if (!isRepeatable(call)) throw connectionLost();
        delayMs = backoff(quiet + 1, retry);
      } catch (error) {
        signal.throwIfAborted();
        if (!isTransient(error) || !isRepeatable(call)) throw error;
        const isAnswer = isRefusal(error);
        if (!isAnswer || retry.isLimited) failures += 1;
        delayMs = delayBefore(error, Math.max(failures, quiet + 1), retry);
        const isLate = !hasStarted && performance.now() + (delayMs ?? 0) > startBy;
        if (failures > most || isLate || delayMs === undefined) throw error;
        mayHaveBegun ||= !isAnswer;
      }
      // Work under a key can have begun: its events are read from the first one.
      if (mayHaveBegun && call.method === "POST") after ??= 0;
      quiet += 1;
      await systemClock.sleep(delayMs, signal);
    }
  } finally {
    leaving.abort();
  }
}

/** Opens a stream; its start has the time limit of other calls. */
async function connect(transport: Transport, call: Call, signal: AbortSignal): Promise<Response> {
  const late = new AbortController();
  const limitMs = call.options?.timeoutMs ?? transport.timeoutMs;
  const timer = setTimeout(() => late.abort(timedOut()), Math.min(limitMs, longestTimerMs));
  try {
    const response = await transport.open(call, anyOf([signal, late.signal]));
    const type = response.headers.get("content-type") ?? "";
    if (response.status !== 204 && !type.startsWith("text/event-stream")) throw notAnAnswer(response.status);
    return response;
  } finally {
    clearTimeout(timer);
  }
}

function resumeAt(call: Call, after: number | undefined, stream: string | undefined): Call {
  const headers: Record<string, string> = { ...call.headers, accept: "text/event-stream" };
  if (after !== undefined) {
    headers["last-event-id"] = String(after);
    if (stream !== undefined) headers[streamHeader] = stream;
  }
  return { ...call, headers };
}

/** Yields the events of a stream to its end, which only some streams have. */
export async function* followEvents(
  transport: Transport,
  call: Call & { readonly after?: number | undefined },
): AsyncGenerator<KitEvent, void> {
  for await (const item of follow(transport, call)) {
    if (item.kind === "result") return;
    if (item.kind !== "event") throw fromEnvelope(item.body) ?? connectionLost();
    yield item.event;
  }
}
