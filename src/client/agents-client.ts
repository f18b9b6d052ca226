import type { ApprovalBody, ApprovalRequest } from "../protocol/approval.ts";
import type { KitEvent } from "../protocol/event.ts";
import type {
  AgentEntry,
  DispatchAccepted,
  DispatchBody,
  HistoryMessage,
  PromptBody,
  PromptReply,
} from "../protocol/prompt.ts";
import type { CallOptions, WorkOptions } from "./call-options.ts";
import { followEvents } from "./event-stream.ts";
import { type PromptStream, promptReply, promptStream } from "./prompt-stream.ts";
import { type AgentConnection, connectAgent } from "./socket/agent-connection.ts";
import type { Transport } from "./transport.ts";

/** An instance of an agent. */
export interface InstanceInput {
  readonly id: string;
}

/** A session of an instance; default `default`. */
export interface SessionInput extends InstanceInput {
  readonly session?: string;
}

export type PromptInput = InstanceInput & PromptBody;
export type DispatchInput = InstanceInput & DispatchBody;

/** Agents: each call names the agent, then the instance with what goes to it. */
export interface AgentsClient {
  list(options?: CallOptions): Promise<readonly AgentEntry[]>;
  /** Prompts an agent and waits for its answer, as long as it takes. */
  invoke(name: string, input: PromptInput, options?: WorkOptions): Promise<PromptReply>;
  /**
   * Prompts an agent, and gives its events as they are made. Leaving early aborts the prompt. Under an
   * idempotency key it outlives a broken connection; then its result comes, and the events made
   * meanwhile are to be had from `events`.
   */
  stream(name: string, input: PromptInput, options?: WorkOptions): PromptStream;
  /** Hands over an input; resolves once it is on the server's disk. */
  dispatch(name: string, input: DispatchInput, options?: WorkOptions): Promise<DispatchAccepted>;
  /** Opens a WebSocket that takes many prompts. */
  connect(name: string, input: SessionInput, options?: CallOptions): Promise<AgentConnection>;
  /**
   * The events of an instance, of one session where it is named: those after an index, then each new
   * one. Connects again after the last event when the connection breaks.
   */
  events(
    name: string,
    input: SessionInput & { readonly after?: number },
    options?: CallOptions,
  ): AsyncIterable<KitEvent>;
  /** The messages of a session, oldest first. */
  history(name: string, input: SessionInput, options?: CallOptions): Promise<readonly HistoryMessage[]>;
  /** Aborts what runs in the session, or in all of the instance; whether anything did. */
  abort(name: string, input: SessionInput, options?: CallOptions): Promise<boolean>;
  /** Removes the instance: sessions, workspaces and events. */
  delete(name: string, input: InstanceInput, options?: CallOptions): Promise<void>;
  /** The tool calls that wait for somebody's word, oldest first. */
  approvals(name: string, input: SessionInput, options?: CallOptions): Promise<readonly ApprovalRequest[]>;
  /** Approves or denies a tool call. */
  approve(
    name: string,
    input: InstanceInput & ApprovalBody & { readonly approval_id: string },
    options?: CallOptions,
  ): Promise<void>;
}

export function createAgentsClient(transport: Transport): AgentsClient {
  const { request } = transport;
  return {
    async list(options = {}) {
      const call = { method: "GET", path: ["agents"], options } as const;
      return (await request<{ agents: readonly AgentEntry[] }>(call)).agents;
    },
    invoke: async (name, { id, ...body }, options = {}) =>
      await promptReply(transport, { path: ["agents", name, id], body, options }),
    stream: (name, { id, ...body }, options = {}) =>
      promptStream(transport, { path: ["agents", name, id], body, options }),
    dispatch: (name, { id, ...body }, options = {}) =>
      request({ method: "POST", path: ["agents", name, id, "dispatch"], body, options }),
    connect: async (name, { id, ...defaults }, options = {}) =>
      await connectAgent(transport, { path: ["agents", name, id], defaults, options }),
    events: (name, { id, after, ...query }, options = {}) =>
      followEvents(transport, { method: "GET", path: ["agents", name, id, "events"], query, after, options }),
    async history(name, { id, ...query }, options = {}) {
      const call = { method: "GET", path: ["agents", name, id, "history"], query, options } as const;
      return (await request<{ messages: readonly HistoryMessage[] }>(call)).messages;
    },
    async abort(name, { id, ...body }, options = {}) {
      const path = ["agents", name, id, "abort"];
      const call = { method: "POST", path, body, options, repeatable: true } as const;
      return (await request<{ aborted: boolean }>(call)).aborted;
    },
    async delete(name, { id }, options = {}) {
      await request({ method: "DELETE", path: ["agents", name, id], options });
    },
    async approvals(name, { id, ...query }, options = {}) {
      const call = { method: "GET", path: ["agents", name, id, "approvals"], query, options } as const;
      return (await request<{ approvals: readonly ApprovalRequest[] }>(call)).approvals;
    },
    async approve(name, { id, approval_id, ...body }, options = {}) {
      await request({ method: "POST", path: ["agents", name, id, "approvals", approval_id], body, options });
    },
  };
}
