import type { Owned } from "../../engine/cluster.ts";
import type { EventReadOptions } from "../../engine/contract.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { Message } from "../../protocol/message.ts";
import type { PromptReply, PromptRequest } from "../../protocol/prompt.ts";
import type { SessionKey, TouchedSession } from "../../protocol/session-entry.ts";
import type { LogPage, LogPageQuery } from "../service/log-page.ts";

type InstanceTarget = Omit<SessionKey, "session">;

/** How a call is heard while it lasts. */
export interface CallListeners {
  /** Fires when the caller is gone. */
  readonly signal: AbortSignal;
  /** The work of a prompt has begun. */
  onStart(): void;
  /** An event of a prompt, as it is made: kept for a caller who is slow, within a limit. */
  onEvent(event: KitEvent): void;
  /** An event of a log: resolves when the caller can take the next one. */
  deliver(event: KitEvent): Promise<void>;
}

/** A call of one node to another: the other answers out of its memory, and never passes it on. */
export interface NodeCalls {
  prompt(
    asked: {
      readonly target: SessionKey;
      readonly request: PromptRequest;
      readonly principal?: string | undefined;
      /** Whether its caller hasReader events. */
      readonly hasReader: boolean;
    },
    listeners: CallListeners,
  ): Promise<PromptReply>;
  abort(target: InstanceTarget & { readonly session?: string | undefined }): Promise<boolean>;
  remove(target: InstanceTarget): Promise<boolean>;
  history(target: SessionKey): Promise<readonly Message[]>;
  historyPage(asked: { readonly target: SessionKey; readonly query: LogPageQuery }): Promise<LogPage>;
  /** Which of these sessions the node works on. */
  working(sessions: readonly SessionKey[]): Promise<readonly boolean[]>;
  /** Whether a client is connected to the instance at the node. */
  attached(target: InstanceTarget): Promise<boolean>;
  /** Removes a session that was not touched since; false where it is in use. */
  forget(asked: {
    readonly session: TouchedSession;
    readonly before: number;
    readonly dryRun: boolean;
  }): Promise<boolean>;
  /** The events of a stream after an index, and each new one; resolves when the stream has ended. */
  events(asked: { readonly stream: string; readonly after: number }, listeners: CallListeners): Promise<void>;
  lastEvent(asked: { readonly stream: string }): Promise<number>;
  readEvents(asked: { readonly stream: string } & EventReadOptions): Promise<readonly KitEvent[]>;
}

export type CallName = keyof NodeCalls;
export type AskedBy<Name extends CallName> = Parameters<NodeCalls[Name]>[0];
export type AnswerOf<Name extends CallName> = Awaited<ReturnType<NodeCalls[Name]>>;

/** The line whose owner answers a call; undefined for a call that any node answers for itself. */
export const ownedBy: { readonly [Name in CallName]: (asked: AskedBy<Name>) => Owned | undefined } = {
  prompt: ({ target }) => instanceOf(target),
  abort: instanceOf,
  remove: instanceOf,
  history: instanceOf,
  historyPage: ({ target }) => instanceOf(target),
  working: () => undefined,
  attached: () => undefined,
  forget: ({ session }) => instanceOf(session),
  events: ({ stream }) => ownedByStream(stream),
  lastEvent: ({ stream }) => ownedByStream(stream),
  readEvents: ({ stream }) => ownedByStream(stream),
};

export function isCallName(name: string): name is CallName {
  return Object.hasOwn(ownedBy, name);
}

function instanceOf({ agent, instance_id }: InstanceTarget): Owned {
  return { agent, instance_id };
}

/** The reverse of `agentStream` and `runStream`. */
export function ownedByStream(stream: string): Owned | undefined {
  const [, agent, instance_id] = /^agent\/([^/]*)\/(.*)$/s.exec(stream) ?? [];
  if (agent !== undefined && instance_id !== undefined) return { agent, instance_id };
  return stream.startsWith("run/") ? { run_id: stream.slice(4) } : undefined;
}

/** One line of an answer. */
export type Frame =
  /** The node takes the call. */
  | { readonly is: "here" }
  /** It does not, and has begun nothing: another node owns what is asked for. */
  | { readonly is: "elsewhere" }
  | { readonly is: "start" }
  | { readonly is: "event"; readonly event: KitEvent }
  /** Nothing else was said for a while. */
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

/** Below it lies what nodes ask each other. */
export const nodesPath = "/_kit/nodes/";

/** How often a node says that it is still at a call, in ms. */
export const aliveMs = 1_000;
