import type { Owned } from "../../engine/cluster.ts";
import type { EventReadOptions, StreamState } from "../../engine/event-log-contract.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { Message } from "../../protocol/message.ts";
import type { PromptReply, PromptRequest } from "../../protocol/prompt.ts";
import type { SessionKey, TouchedSession } from "../../protocol/session-entry.ts";
import type { LogPage, LogPageQuery } from "../service/log-page.ts";

type InstanceTarget = Omit<SessionKey, "session">;

/** The work that an abort ends: all of an instance, all of one of its sessions, or one operation. */
export interface AbortTarget extends InstanceTarget {
  readonly session?: string | undefined;
  readonly operation_id?: string | undefined;
}

/** The callbacks of a call. */
export interface CallListeners {
  /** Fires when the caller disconnects. */
  readonly signal: AbortSignal;
  /** Called when the work of a prompt starts. */
  onStart(): void;
  /** Receives an event of a prompt as it is emitted; events for a slow caller wait, up to a limit. */
  onEvent(event: KitEvent): void;
  /** Receives an event of a log; resolves when the caller can receive the next one. */
  deliver(event: KitEvent): Promise<void>;
}

/** The calls from one node to another, which answers from its memory and never forwards them. */
export interface NodeCalls {
  prompt(
    request: {
      readonly target: SessionKey;
      readonly request: PromptRequest;
      readonly principal?: string | undefined;
      /** Whether the caller reads the events. */
      readonly hasReader: boolean;
    },
    listeners: CallListeners,
  ): Promise<PromptReply>;
  abort(target: AbortTarget): Promise<boolean>;
  remove(target: InstanceTarget): Promise<boolean>;
  history(target: SessionKey): Promise<readonly Message[]>;
  historyPage(request: { readonly target: SessionKey; readonly query: LogPageQuery }): Promise<LogPage>;
  /** Returns the sessions that the node works on. */
  atWork(request: Readonly<Record<string, never>>): Promise<readonly SessionKey[]>;
  /** Returns whether a client is connected to the instance at the node. */
  attached(target: InstanceTarget): Promise<boolean>;
  /** Removes a session that was not used since `before`; returns false if it is in use. */
  forget(request: {
    readonly session: TouchedSession;
    readonly before: number;
    readonly dryRun: boolean;
  }): Promise<boolean>;
  /** Passes the events of a stream after an index, and each new one; resolves when the stream has ended. */
  events(
    request: { readonly stream: string; readonly after: number; readonly id?: string | undefined },
    listeners: CallListeners,
  ): Promise<void>;
  lastEvent(request: { readonly stream: string }): Promise<number>;
  streamState(request: { readonly stream: string }): Promise<StreamState>;
  readEvents(request: { readonly stream: string } & EventReadOptions): Promise<readonly KitEvent[]>;
}

export type CallName = keyof NodeCalls;
export type AskedBy<Name extends CallName> = Parameters<NodeCalls[Name]>[0];
export type AnswerOf<Name extends CallName> = Awaited<ReturnType<NodeCalls[Name]>>;

/** Returns the session line whose owner answers a call; undefined for a call that each node answers itself. */
export const ownedBy: { readonly [Name in CallName]: (request: AskedBy<Name>) => Owned | undefined } = {
  prompt: ({ target }) => instanceOf(target),
  abort: instanceOf,
  remove: instanceOf,
  history: instanceOf,
  historyPage: ({ target }) => instanceOf(target),
  atWork: () => undefined,
  attached: () => undefined,
  forget: ({ session }) => instanceOf(session),
  events: ({ stream }) => ownedByStream(stream),
  lastEvent: ({ stream }) => ownedByStream(stream),
  streamState: ({ stream }) => ownedByStream(stream),
  readEvents: ({ stream }) => ownedByStream(stream),
};

export function isCallName(name: string): name is CallName {
  return Object.hasOwn(ownedBy, name);
}

function instanceOf({ agent, instance_id }: InstanceTarget): Owned {
  return { agent, instance_id };
}

/** Parses the name of a stream, which `agentStream` or `runStream` created. */
export function ownedByStream(stream: string): Owned | undefined {
  const [, agent, instance_id] = /^agent\/([^/]*)\/(.*)$/s.exec(stream) ?? [];
  if (agent !== undefined && instance_id !== undefined) return { agent, instance_id };
  return stream.startsWith("run/") ? { run_id: stream.slice(4) } : undefined;
}

/** One line of an answer. */
export type Frame =
  /** The node has accepted the call. */
  | { readonly is: "here" }
  /** The node has started nothing: another node owns the instance or run. */
  | { readonly is: "elsewhere" }
  | { readonly is: "start" }
  | { readonly is: "event"; readonly event: KitEvent }
  /** A heartbeat. */
  | { readonly is: "alive" }
  | { readonly is: "result"; readonly value: unknown }
  | { readonly is: "error"; readonly error: CarriedError };

/** A `KitError` between nodes. */
export interface CarriedError {
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
}

/** The path prefix of calls between nodes. */
export const nodesPath = "/_kit/nodes/";

/** How often a node sends a heartbeat during a call, in ms. */
export const aliveMs = 1_000;
