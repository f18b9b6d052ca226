import type { EventListener } from "../../agents/events.ts";
import type { Agent } from "../../agents/harness.ts";
import { systemClock } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import type { AdmitRequest, Engine, WorkContext } from "../../engine/contract.ts";
import { agentStream, type EventLog } from "../../engine/event-log-contract.ts";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { PromptReply, PromptRequest } from "../../protocol/prompt.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { ServiceCluster } from "../cluster/service-cluster.ts";
import { type Instances, instanceKey } from "../runtime/instances.ts";
import { origins, type WorkTraces } from "../runtime/observers.ts";
import type { Sources } from "../sources/sources.ts";
import type { FencedStore } from "./fenced-store.ts";
import type { RestingWork, WorkSlots } from "./resting-work.ts";
import type { InstanceTarget, PromptCall } from "./service.ts";
import {
  checkedPrompt,
  type SessionInput,
  toIdempotencyKey,
  toSessionKey,
  toStoredPrompt,
} from "./session-input.ts";
import { operationOf } from "./stored-input.ts";

export interface PromptsOptions {
  readonly sources: Pick<Sources, "checkAgent">;
  readonly engine: Engine;
  /** The other nodes of a cluster: a prompt runs on the node that owns the instance. */
  readonly nodes: ServiceCluster | undefined;
  readonly traces: Pick<WorkTraces, "ofCaller">;
  readonly work: Pick<SessionWork, "perform">;
  readonly listeners: OperationListeners;
}

/** The principal and the trace of a prompt's caller. */
export type PromptSender = Pick<AdmitRequest, "principal" | "trace">;

/** Prompts whose callers wait for the reply. */
export class Prompts {
  readonly #options: PromptsOptions;

  constructor(options: PromptsOptions) {
    this.#options = options;
  }

  /** Prompts a session and returns the reply. */
  async prompt(target: SessionKey, request: PromptRequest, call: PromptCall = {}): Promise<PromptReply> {
    const { sources, nodes } = this.#options;
    sources.checkAgent(target.agent);
    const key = toSessionKey(target);
    if (nodes === undefined || call.idempotencyKey !== undefined)
      return await this.promptHere(key, request, call);
    const { principal, ...listeners } = call;
    return await nodes.prompt({ target: key, request, principal }, listeners);
  }

  /** Prompts a session in this process once all earlier inputs of the session have ended. `key` is checked. */
  async promptHere(key: SessionKey, request: PromptRequest, call: PromptCall): Promise<PromptReply> {
    const { engine, traces, work, listeners } = this.#options;
    const { signal, idempotencyKey, principal, onStart, onEvent } = call;
    const sender: PromptSender = { principal, ...traces.ofCaller() };
    if (idempotencyKey !== undefined) {
      const idempotency_key = toIdempotencyKey(idempotencyKey);
      const input = toStoredPrompt(request);
      return await this.#promptOnce({ ...key, ...sender, idempotency_key, input }, call);
    }
    const input = { key, request: checkedPrompt(request), operationId: createId("op") };
    const stop = onEvent === undefined ? undefined : listeners.add(input.operationId, onEvent);
    try {
      const begin = (context: WorkContext): Promise<PromptReply> => {
        onStart?.();
        return work.perform(context, sender, input);
      };
      return await engine.inLine({ ...key, principal }, begin, { signal });
    } finally {
      stop?.();
    }
  }

  /**
   * Prompts under an idempotency key: the engine stores the input, and callers with the same key wait for the same reply.
   * The events come from the log, because the work can have started earlier or run in another process.
   */
  async #promptOnce(
    request: AdmitRequest,
    { signal, onEvent, after: resumeAt }: PromptCall,
  ): Promise<PromptReply> {
    const { engine } = this.#options;
    const stream = agentStream(request.agent, request.instance_id);
    const after = onEvent === undefined ? 0 : (resumeAt ?? (await engine.events.last(stream)));
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

interface RunningInput {
  readonly key: SessionKey;
  /** Stops the operation and waits for its end. */
  abort(): Promise<boolean>;
  /** Resolves when the operation has ended, also after a failure. */
  readonly ended: Promise<void>;
}

/** An input that the engine has started. */
export interface StartedInput extends SessionInput {
  readonly key: SessionKey;
  /** Set for a stored input, which can be resumed from its log. */
  readonly resting?: RestingWork | undefined;
  /** Runs before the session is opened. */
  readonly prepare?: (() => Promise<void>) | undefined;
}

export interface SessionWorkOptions {
  readonly instances: Pick<Instances, "get" | "renew" | "release">;
  readonly engine: Pick<Engine, "capabilities">;
  /** The event log of this node; undefined if the engine keeps no events of instances. */
  readonly events: Pick<EventLog, "begin"> | undefined;
  readonly slots: WorkSlots;
  /** The store of a node that owns some of the instances. */
  readonly fenced: FencedStore | undefined;
}

/** Prompts sessions, and knows the inputs that run in this process. */
export class SessionWork {
  readonly #options: SessionWorkOptions;
  readonly #running = new Map<string, Set<RunningInput>>();
  #fence = 0;

  constructor(options: SessionWorkOptions) {
    this.#options = options;
  }

  /**
   * Prompts the session of an input, or resumes the operation of an input that a crash interrupted. `context` holds the
   * session's place in line and a slot.
   */
  async perform(
    context: WorkContext,
    { principal, trace }: PromptSender,
    input: StartedInput,
  ): Promise<PromptReply> {
    const { events, slots } = this.#options;
    const { agent, instance_id } = input.key;
    // If the log fails, the first event reports the error.
    await events?.begin(agentStream(agent, instance_id)).catch(() => undefined);
    const prompt = { ...input.key, operation_id: input.operationId };
    const slotWork = { context, prompt, resting: input.resting, ...defined({ principal }) };
    return await origins.run({ ...trace }, () => slots.hold(slotWork, () => this.#run(context, input)));
  }

  async #run(work: WorkContext, { key, resting, prepare, ...input }: StartedInput): Promise<PromptReply> {
    const { instances, fenced } = this.#options;
    if (fenced === undefined) this.#renewAfterTakeover(work);
    else await this.#takeOver(fenced, key, work.fence);
    const { agent, instance_id, session } = key;
    // While an operation rests, nothing keeps its instance in memory.
    let live: Agent | undefined;
    const attempt = async (signal: AbortSignal): Promise<PromptReply> => {
      live = await instances.get({ name: agent, id: instance_id, payload: {} });
      try {
        return await prompt(live.session(session), input, { signal, resumes: resting !== undefined });
      } finally {
        live = undefined;
      }
    };
    const begin = async (): Promise<PromptReply> => {
      try {
        await prepare?.();
        return await (resting === undefined ? attempt(work.signal) : resting.run(attempt));
      } finally {
        fenced?.endInput(key);
      }
    };
    const reply = begin();
    const abort = async (): Promise<boolean> => (await live?.session(session).abort()) ?? false;
    const remove = this.#add({ key, abort, ended: reply.then(ignore, ignore) });
    return await reply.finally(remove);
  }

  /** Returns the running inputs of an instance, or of one of its sessions. */
  running(target: InstanceTarget & { readonly session?: string | undefined }): readonly RunningInput[] {
    return [...(this.#running.get(instanceKey(target)) ?? [])].filter(
      ({ key }) => target.session === undefined || key.session === target.session,
    );
  }

  /** Whether the instance in memory was opened under this fence. */
  isCurrent(instance: InstanceTarget, fence: number): boolean {
    return fence > 0 && this.#options.fenced?.fenceOf(instance) === fence;
  }

  /** Closes the instance if another node can have worked for it: the next one reads what that node wrote. */
  async #takeOver(fenced: FencedStore, { agent, instance_id }: SessionKey, fence: number): Promise<void> {
    const isNew = await fenced.takeOver({ agent, instance_id }, fence);
    if (isNew) await this.#options.instances.release(agent, instance_id);
  }

  /** Closes all instances if another process can have worked for them: the next ones read what that process wrote. */
  #renewAfterTakeover({ fence }: WorkContext): void {
    const { engine, instances } = this.#options;
    if (!engine.capabilities.durable || fence === this.#fence) return;
    this.#fence = fence;
    instances.renew();
  }

  #add(input: RunningInput): () => void {
    const key = instanceKey(input.key);
    const running = this.#running.get(key) ?? new Set();
    this.#running.set(key, running.add(input));
    return () => {
      running.delete(input);
      if (running.size === 0 && this.#running.get(key) === running) this.#running.delete(key);
    };
  }
}

function ignore(): void {}

async function prompt(
  session: ReturnType<Agent["session"]>,
  { request, operationId }: SessionInput,
  how: { readonly signal: AbortSignal; readonly resumes: boolean },
): Promise<PromptReply> {
  const { message, thinking_level: thinkingLevel, model, backend, role, images, files } = request;
  const choices = defined({ model, backend, role, images, files, thinkingLevel });
  const result = await session.prompt(message, { ...choices, ...how, operationId });
  const { text, usage, metadata, result: value } = result;
  return {
    text,
    ...(value === undefined ? {} : { result: value }),
    usage,
    model: { id: result.model.id },
    metadata,
  };
}
