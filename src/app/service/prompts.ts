import type { EventListener } from "../../agents/events.ts";
import type { Agent } from "../../agents/harness.ts";
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import {
  type AdmitRequest,
  agentStream,
  type Engine,
  type EventLog,
  type WorkContext,
} from "../../engine/contract.ts";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { PromptReply, PromptRequest } from "../../protocol/prompt.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { Instances } from "../runtime/instances.ts";
import { toIdempotencyKey, toSessionKey } from "../runtime/session-key.ts";
import type { FencedStore } from "./fenced-store.ts";
import type { RestingWork } from "./resting-work.ts";
import type { InstanceTarget, PromptCall } from "./service.ts";
import { checkedPrompt, type SessionInput, toStoredPrompt } from "./session-input.ts";
import { operationOf } from "./stored-input.ts";
import type { WorkTraces } from "./work-errors.ts";

export interface PromptsOptions {
  readonly engine: Engine;
  readonly traces: Pick<WorkTraces, "asked">;
  /** Works on an input once its turn in the line of its session has come. */
  readonly perform: (
    context: WorkContext,
    sender: PromptSender,
    input: SessionInput & { readonly key: SessionKey },
  ) => Promise<PromptReply>;
  /** Receives what a listener of a prompt throws. */
  readonly onError: (error: unknown) => void;
}

/** For whom a prompt is done, and within which trace. */
export type PromptSender = Pick<AdmitRequest, "principal" | "trace">;

/** Prompts whose callers wait for the reply. */
export class Prompts {
  readonly #options: PromptsOptions;
  /** Receive the events of the operations that callers wait for. */
  readonly listeners: OperationListeners;

  constructor(options: PromptsOptions) {
    this.#options = options;
    this.listeners = new OperationListeners(options.onError);
  }

  /** Takes a place in the line of the session, prompts it, and gives the reply. */
  async prompt(target: SessionKey, request: PromptRequest, call: PromptCall): Promise<PromptReply> {
    const { engine, traces, perform } = this.#options;
    const { signal, idempotencyKey, principal, onStart, onEvent } = call;
    const key = toSessionKey(target);
    const sender: PromptSender = { principal, ...traces.asked() };
    if (idempotencyKey !== undefined) {
      const idempotency_key = toIdempotencyKey(idempotencyKey);
      const input = toStoredPrompt(request);
      return await this.#promptOnce({ ...key, ...sender, idempotency_key, input }, call);
    }
    const input = { key, request: checkedPrompt(request), operationId: createId("op") };
    const stop = onEvent === undefined ? undefined : this.listeners.add(input.operationId, onEvent);
    try {
      const work = (context: WorkContext): Promise<PromptReply> => {
        onStart?.();
        return perform(context, sender, input);
      };
      return await engine.inLine({ ...key, principal }, work, { signal });
    } finally {
      stop?.();
    }
  }

  /**
   * Prompts under an idempotency key: the input outlives its sender, and the same key waits for the same reply. Its events
   * come from the log, because the work may have begun before, or another process may do it.
   */
  async #promptOnce(request: AdmitRequest, { signal, onEvent }: PromptCall): Promise<PromptReply> {
    const { engine } = this.#options;
    const stream = agentStream(request.agent, request.instance_id);
    const after = onEvent === undefined ? 0 : await engine.events.last(stream);
    const { dispatch_id } = await engine.admit(request);
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
  throw new KitError({ code: type, message });
}

/** Listeners of operations and of the tasks below them. Each event costs one look-up, however many listen. */
class OperationListeners {
  readonly #families = new Map<string, Family>();
  readonly #onError: (error: unknown) => void;

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  /** Adds a listener; the function returned removes it. */
  add(operationId: string, listener: EventListener): () => void {
    const family: Family = { listener, members: new Set([operationId]) };
    this.#families.set(operationId, family);
    return () => {
      for (const member of family.members) this.#families.delete(member);
    };
  }

  /** Tells the listener of the operation that an event belongs to. */
  receive(event: KitEvent): void {
    if (this.#families.size === 0) return;
    const family = this.#families.get(event.operation_id) ?? this.#adopt(event);
    if (family === undefined) return;
    try {
      const familyListener = family.listener(event);
      if (familyListener instanceof Promise) familyListener.catch(this.#onError);
    } catch (error) {
      this.#onError(error);
    }
  }

  /** Adds the operation of a task to the family of the operation that has started it. */
  #adopt({ operation_id, parent_operation_id: parent }: KitEvent): Family | undefined {
    const family = parent === undefined ? undefined : this.#families.get(parent);
    if (family === undefined) return undefined;
    family.members.add(operation_id);
    this.#families.set(operation_id, family);
    return family;
  }
}

interface Family {
  readonly listener: EventListener;
  readonly members: Set<string>;
}

/**
 * Gives a listener the events of a stream after an index, until `until` has settled and the listener has received all that
 * was appended by then. Gives what `until` gives.
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
  let last = Number.POSITIVE_INFINITY;
  const reading = (async () => {
    for await (const event of events.subscribe(stream, { after, signal: stop.signal })) {
      received = event.index;
      await listener(event);
      if (received >= last) return;
    }
  })();
  // Awaited below; a failure before that must not count as unhandled.
  reading.catch(() => undefined);
  try {
    return await until;
  } finally {
    last = await events.last(stream);
    if (received >= last) stop.abort();
    await reading.catch((error: unknown) => {
      if (!stop.signal.aborted) throw error;
    });
  }
}

interface RunningInput {
  readonly key: SessionKey;
  /** Stops the operation and waits for its end. */
  abort(): Promise<boolean>;
  /** Resolves when it has ended, however. */
  readonly ended: Promise<void>;
}

/** An input whose turn has come. */
export interface TakenInput extends SessionInput {
  readonly key: SessionKey;
  /** Set for a stored input, which can be resumed from its log. */
  readonly resting?: RestingWork | undefined;
  /** Done before the session is opened, in its turn. */
  readonly prepare?: (() => Promise<void>) | undefined;
}

export interface SessionWorkOptions {
  /** Whether several processes take turns at all of the work. */
  readonly isShared: boolean;
  /** The store of a node that owns some of the instances. */
  readonly fenced?: FencedStore | undefined;
}

/** Prompts sessions, and knows which inputs this process works on. */
export class SessionWork {
  readonly #instances: Pick<Instances, "get" | "renew" | "release">;
  readonly #running = new Map<string, Set<RunningInput>>();
  readonly #isShared: boolean;
  readonly #fenced: FencedStore | undefined;
  #fence = 0;

  constructor(
    instances: Pick<Instances, "get" | "renew" | "release">,
    { isShared, fenced }: SessionWorkOptions,
  ) {
    this.#instances = instances;
    this.#isShared = isShared;
    this.#fenced = fenced;
  }

  /** Prompts the session of an input, or resumes the operation of one that a crash interrupted. */
  async run(work: WorkContext, { key, ...taken }: TakenInput): Promise<PromptReply> {
    if (this.#fenced === undefined) this.#renewAfterTakeover(work);
    else await this.#takeOver(this.#fenced, key, work.fence);
    try {
      return await this.#work(work, { key, ...taken });
    } finally {
      this.#fenced?.endInput(key);
    }
  }

  async #work(work: WorkContext, { key, resting, prepare, ...input }: TakenInput): Promise<PromptReply> {
    await prepare?.();
    const { agent, instance_id, session } = key;
    // Nothing keeps the instance of an operation that rests.
    let live: Agent | undefined;
    const attempt = async (signal: AbortSignal): Promise<PromptReply> => {
      live = await this.#instances.get({ name: agent, id: instance_id, payload: {} });
      try {
        return await prompt(live.session(session), input, { signal, resumes: resting !== undefined });
      } finally {
        live = undefined;
      }
    };
    const reply = resting === undefined ? attempt(work.signal) : resting.run(attempt);
    const stop = this.#add({
      key,
      abort: async () => (await live?.session(session).abort()) ?? false,
      ended: reply.then(
        () => undefined,
        () => undefined,
      ),
    });
    return await reply.finally(stop);
  }

  /** The inputs that run for an instance, or for one of its sessions. */
  running(target: InstanceTarget & { readonly session?: string | undefined }): readonly RunningInput[] {
    return [...(this.#running.get(keyOf(target)) ?? [])].filter(
      ({ key }) => target.session === undefined || key.session === target.session,
    );
  }

  /** Whether what is in memory of an instance is of the time under this fence. */
  isCurrent(instance: InstanceTarget, fence: number): boolean {
    return fence > 0 && this.#fenced?.fenceOf(instance) === fence;
  }

  /** Another node may have worked for the instance: it continues from what that has written. */
  async #takeOver(fenced: FencedStore, { agent, instance_id }: SessionKey, fence: number): Promise<void> {
    const isNew = await fenced.takeOver({ agent, instance_id }, fence);
    if (isNew) await this.#instances.release(agent, instance_id);
  }

  /** Another process may have worked for the instances: they continue from what it has written. */
  #renewAfterTakeover({ fence }: WorkContext): void {
    if (!this.#isShared || fence === this.#fence) return;
    this.#fence = fence;
    this.#instances.renew();
  }

  #add(input: RunningInput): () => void {
    const key = keyOf(input.key);
    const others = this.#running.get(key) ?? new Set();
    this.#running.set(key, others.add(input));
    return () => {
      others.delete(input);
      if (others.size === 0 && this.#running.get(key) === others) this.#running.delete(key);
    };
  }
}

async function prompt(
  session: ReturnType<Agent["session"]>,
  { request, operationId }: SessionInput,
  how: { readonly signal: AbortSignal; readonly resumes: boolean },
): Promise<PromptReply> {
  const { message, thinking_level: thinkingLevel, model, backend, role, images, files } = request;
  const choices = defined({ model, backend, role, images, files, thinkingLevel });
  const result = await session.prompt(message, { ...choices, ...how, operationId });
  const { text, usage, metadata } = result;
  const { result: value } = result;
  return {
    text,
    ...(value === undefined ? {} : { result: value }),
    usage,
    model: { id: result.model.id },
    metadata,
  };
}

function keyOf({ agent, instance_id }: InstanceTarget): string {
  return JSON.stringify([agent, instance_id]);
}
