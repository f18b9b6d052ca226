import { KitError } from "../base/kit-error.ts";
import type { DeepPartial } from "../base/record.ts";
import type { KitEvent } from "../protocol/event.ts";
import type { PromptReply } from "../protocol/prompt.ts";
import { partialResults } from "../protocol/read-records.ts";
import { follow } from "./follow.ts";
import { inTime } from "./in-time.ts";
import type { StreamItem } from "./read-stream.ts";
import type { Call } from "./route-call.ts";
import { connectionLost, fromEnvelope } from "./to-kit-error.ts";
import type { Transport } from "./transport.ts";

/**
 * The events of a call as they are emitted, and its result. The client sends the request when the first event or the
 * result is requested. Iterating throws the `KitError` of failed work; leaving the loop early closes the connection.
 */
export interface ResultStream<Result> extends AsyncIterable<KitEvent> {
  /** Reads the rest of the stream and returns its result. */
  result(): Promise<Result>;
}

export function createResultStream<Result>(
  items: AsyncIterable<StreamItem>,
  toResult: (body: unknown) => Result,
): ResultStream<Result> {
  let outcome: { readonly result: Result } | { readonly error: unknown } | undefined;

  async function* read(): AsyncGenerator<KitEvent, void> {
    outcome = { error: leftEarly() };
    try {
      for await (const item of items) {
        if (item.kind === "event") yield item.event;
        else if (item.kind === "result") outcome = { result: toResult(item.body) };
        else throw fromEnvelope(item.body) ?? connectionLost();
      }
    } catch (error) {
      outcome = { error };
      throw error;
    }
  }

  const events = read();
  return {
    [Symbol.asyncIterator]: () => events,
    async result() {
      for (let next = await events.next(); next.done !== true; next = await events.next());
      if (outcome !== undefined && "result" in outcome) return outcome.result;
      throw outcome?.error ?? leftEarly();
    },
  };
}

function leftEarly(): KitError {
  return new KitError({ code: "aborted", message: "The stream was left before its result." });
}

/** The answer of a prompt; `result` has the type of the agent's `output`. */
export type TypedReply<Result> = unknown extends Result
  ? PromptReply
  : Omit<PromptReply, "result"> & { readonly result: Result };

/** A running prompt; its result is that of `invoke`. */
export interface PromptStream<Result = unknown> extends ResultStream<TypedReply<Result>> {
  /**
   * Yields the growing typed result of an agent with an `output`, instead of the events: each value replaces the one
   * before, and a repaired answer starts again. The values are what the model has written so far, unchecked by the schema.
   *
   * @example
   * import { KitClient } from "kit/client";
   *
   * const client = new KitClient({ baseUrl: "http://127.0.0.1:2024" });
   * const stream = client.agents.stream("triage", { id: "ticket-7", message: "The invoice is wrong." });
   * for await (const ticket of stream.partialResults()) console.log(ticket);
   * console.log((await stream.result()).result);
   */
  partialResults(): AsyncIterable<DeepPartial<Result>>;
}

/** Calls a route that prompts and can answer with events. */
export function promptStream(transport: Transport, call: Call): PromptStream {
  return createPromptStream(
    follow(transport, call),
    (body) => (body as { readonly result: PromptReply }).result,
  );
}

export function createPromptStream(
  items: AsyncIterable<StreamItem>,
  toReply: (body: unknown) => PromptReply,
): PromptStream {
  const stream = createResultStream(items, toReply);
  return { ...stream, partialResults: () => partialResults(stream) };
}

/**
 * Waits for the answer of a prompt. It also reads a stream, because an answer can take minutes: proxies, and Node's
 * `fetch` after five minutes, close a silent connection.
 */
export async function promptReply(transport: Transport, call: Call): Promise<PromptReply> {
  const { timeoutMs, signal } = call.options ?? {};
  return await inTime(timeoutMs, [signal], (limited) =>
    promptStream(transport, { ...call, options: { ...call.options, signal: limited } }).result(),
  );
}
