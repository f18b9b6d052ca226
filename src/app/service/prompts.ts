import type { EventListener } from "../../agents/events.ts";
import { systemClock } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import type { Engine } from "../../engine/contract.ts";
import type { EventLog } from "../../engine/event-log-contract.ts";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { PromptReply, PromptRequest } from "../../protocol/prompt.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { agentStream } from "../../protocol/session-name.ts";
import type { NodeCalls } from "../cluster/node-calls.ts";
import type { Owners } from "../cluster/owners.ts";
import type { WorkTraces } from "../runtime/observers.ts";
import type { Sources } from "../sources/sources.ts";
import { checkCallerCalls } from "./caller-calls.ts";
import type { Caller, Input } from "./input.ts";
import type { PromptCall } from "./service.ts";
import { checkedPrompt, toIdempotencyKey, toSessionKey, toStoredPrompt } from "./session-input.ts";
import type { SessionWork } from "./session-work.ts";
import { operationOf } from "./stored-input.ts";

export interface PromptsOptions {
  readonly sources: Pick<Sources, "checkAgent">;
  readonly engine: Engine;
  /** A prompt runs on the node that owns the instance. */
  readonly owners: Pick<Owners, "prompt">;
  readonly traces: Pick<WorkTraces, "ofCaller">;
  readonly work: Pick<SessionWork, "perform">;
  readonly listeners: OperationListeners;
}

/** Prompts whose callers wait for the reply. */
export class Prompts {
  readonly #options: PromptsOptions;
  /** Prompts a session that this node owns, once all earlier inputs of the session have ended. */
  readonly answers: Pick<NodeCalls, "prompt"> = {
    prompt: async ({ target: key, request, principal, hasReader }, { signal, onStart, onEvent }) => {
      const { sources, engine, traces, work, listeners } = this.#options;
      sources.checkAgent(key.agent);
      const input: Input = {
        key,
        request: checkedPrompt(request),
        caller: { principal, ...traces.ofCaller() },
        operationId: createId("op"),
      };
      const stop = hasReader ? listeners.add(input.operationId, onEvent) : undefined;
      try {
        return await engine.inLine(
          { ...key, principal },
          (context) => {
            onStart();
            return work.perform(context, input);
          },
          { signal },
        );
      } finally {
        stop?.();
      }
    },
  };

  constructor(options: PromptsOptions) {
    this.#options = options;
  }

  /** Prompts a session and returns the reply. */
  readonly prompt = async (
    target: SessionKey,
    request: PromptRequest,
    call: PromptCall = {},
  ): Promise<PromptReply> => {
    const { sources, owners, engine } = this.#options;
    sources.checkAgent(target.agent);
    const key = toSessionKey(target);
    const { principal, idempotencyKey, ...listeners } = call;
    const { tools } = request;
    if (tools !== undefined) await checkCallerCalls(engine, key, { tools, idempotencyKey });
    return idempotencyKey === undefined
      ? await owners.prompt({ target: key, request, principal }, listeners)
      : await this.#promptOnce(key, request, call);
  };

  /**
   * Prompts under an idempotency key: the engine stores the input, and callers with the same key wait for the same reply.
   * The events come from the log, because the work can have started earlier or run in another process.
   */
  async #promptOnce(
    key: SessionKey,
    request: PromptRequest,
    { signal, principal, idempotencyKey, receivedAt: received_at, onEvent, after: resumeAt }: PromptCall,
  ): Promise<PromptReply> {
    const { engine, traces } = this.#options;
    const idempotency_key = toIdempotencyKey(idempotencyKey);
    const input = toStoredPrompt(request);
    const stream = agentStream(key.agent, key.instance_id);
    const after = onEvent === undefined ? 0 : (resumeAt ?? (await engine.events.last(stream)));
    const caller: Caller = { principal, ...traces.ofCaller() };
    const { dispatch_id } = await engine.admit({ ...key, ...caller, idempotency_key, received_at, input });
    const reply = engine.awaitDispatch(dispatch_id, { signal }).then(toReply);
    if (onEvent === undefined) return await reply;
    const listeners = new OperationListeners(() => undefined);
    listeners.add(operationOf(dispatch_id), onEvent);
    const listener = (event: KitEvent): void => listeners.receive(event);
    return await followEvents(engine.events, { stream, after, until: reply, listener });
  }
}

function toReply(record: DispatchRecord | undefined): PromptReply {
  if (record?.status === "completed") return record.result as PromptReply;
  const { type, message } = record?.error ?? { type: "aborted", message: "The input was cancelled." };
  // Tells callers that the work has failed, and not this call.
  throw new KitError({ code: type, message, meta: { dispatch_id: record?.dispatch_id } });
}

/**
 * Listeners for the events of operations that callers wait for, and of their tasks. Each event costs one look-up, however
 * many listeners there are.
 */
export class OperationListeners {
  readonly #families = new Map<string, Family>();
  readonly #onError: (error: unknown) => void;

  /** `onError` receives errors of listeners. */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  /** Adds a listener. Returns a function that removes it. */
  add(operationId: string, listener: EventListener): () => void {
    const family: Family = { listener, members: new Set([operationId]) };
    this.#families.set(operationId, family);
    return () => {
      for (const member of family.members) this.#families.delete(member);
    };
  }

  /** Passes an event to the listener of its operation. */
  receive(event: KitEvent): void {
    if (this.#families.size === 0) return;
    const family = this.#families.get(event.operation_id) ?? this.#adopt(event);
    if (family === undefined) return;
    try {
      const received = family.listener(event);
      if (received instanceof Promise) received.catch(this.#onError);
    } catch (error) {
      this.#onError(error);
    }
  }

  /** Adds the operation of a task to the family of the operation that started it. */
  #adopt({ operation_id, parent_operation_id: parent }: KitEvent): Family | undefined {
    const family = parent === undefined ? undefined : this.#families.get(parent);
    if (family === undefined) return undefined;
    family.members.add(operation_id);
    this.#families.set(operation_id, family);
    return family;
  }
}

/** An operation and its tasks. */
interface Family {
  readonly listener: EventListener;
  readonly members: Set<string>;
}

/** Returns a listener for the events of an instance: it stores them in a stream, and passes them to the listeners of their operations. */
export type EventRecorder = (stream: string) => (event: KitEvent) => void;

export function createRecorder(log: EventLog | undefined, listeners: OperationListeners): EventRecorder {
  return (stream) => (event) => {
    try {
      log?.append(stream, event);
    } catch (error) {
      // This process has lost the lease: its late events are dropped.
      if (!(error instanceof KitError && error.code === "lease_lost")) throw error;
    } finally {
      // Listeners of the prompt receive the event even if the event log rejects it.
      listeners.receive(event);
    }
  };
}

/** Events that are read at a time once the work has ended. */
const restPage = 500;
/** The pause after a failed read. */
const pauseMs = 250;

/**
 * Passes the events of a stream after an index to a listener, until `until` has settled and the listener has received
 * all events appended by then. Settles as `until` does.
 */
export async function followEvents<Value>(
  events: EventLog,
  request: {
    readonly stream: string;
    readonly after: number;
    readonly until: Promise<Value>;
    readonly listener: EventListener;
  },
): Promise<Value> {
  const { stream, after, until, listener } = request;
  const stop = new AbortController();
  let received = after;
  const receive = async (event: KitEvent): Promise<void> => {
    received = event.index;
    await listener(event);
  };
  const { signal } = stop;
  const reading = (async () => {
    while (!signal.aborted) {
      try {
        for await (const event of events.subscribe(stream, { after: received, signal })) await receive(event);
        return;
      } catch {
        // The rest is read below.
        await systemClock.sleep(pauseMs, signal).catch(() => undefined);
      }
    }
  })();
  try {
    return await until;
  } finally {
    const last = await events.last(stream);
    stop.abort();
    await reading;
    // The last index may have no event, if events were lost with their writer: a page that is empty is the end.
    while (received < last) {
      const page = await events.read(stream, { after: received, limit: restPage });
      if (page.length === 0) break;
      for (const event of page) await receive(event);
    }
  }
}
