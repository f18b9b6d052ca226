import type {
  AllowChoices,
  AllowedCalls,
  AllowRule,
  ApprovalBody,
  ApprovalRequest,
} from "../protocol/approval.ts";
import type { KitEvent } from "../protocol/event.ts";
import type {
  AgentEntry,
  DispatchAccepted,
  DispatchBody,
  HistoryMessage,
  HistoryPage,
  PromptBody,
} from "../protocol/prompt.ts";
import type {
  ForkBody,
  Forked,
  OperationEvents,
  OperationPage,
  OperationsQuery,
  TurnDetail,
  TurnQuery,
} from "../protocol/trace.ts";
import type { CallOptions, WorkOptions } from "./call-options.ts";
import { followEvents } from "./follow.ts";
import type { AnyProject, NameIn, OutputOf } from "./project-types.ts";
import { type PromptStream, promptReply, promptStream, type TypedReply } from "./result-stream.ts";
import { route } from "./route-call.ts";
import type { RunEventsInput } from "./runs-client.ts";
import { type AgentConnection, connectAgent } from "./socket/agent-connection.ts";
import type { Transport } from "./transport.ts";

/** An instance of an agent. */
export interface InstanceInput {
  readonly id: string;
}

/** A session of an instance; default `default`. */
export interface SessionInput extends InstanceInput {
  readonly session?: string | undefined;
}

export type PromptInput = InstanceInput & PromptBody;
export type DispatchInput = InstanceInput & DispatchBody;

/** Calls to agents: each takes the name of the agent, then the instance and the input. */
export interface AgentsClient<Agents = AnyProject["agents"]> {
  list(options?: CallOptions): Promise<readonly AgentEntry[]>;
  /** Prompts an agent and waits for its answer, as long as it takes. */
  invoke<Name extends NameIn<Agents>>(
    name: Name,
    input: PromptInput,
    options?: WorkOptions,
  ): Promise<TypedReply<OutputOf<Agents[Name]>>>;
  /**
   * Prompts an agent and yields its events as they are emitted. Leaving the loop early aborts the prompt. With an
   * idempotency key, the prompt survives a broken connection: the client then gets the result, and `events` has the
   * events of the time between.
   */
  stream<Name extends NameIn<Agents>>(
    name: Name,
    input: PromptInput,
    options?: WorkOptions,
  ): PromptStream<OutputOf<Agents[Name]>>;
  /** Dispatches an input; resolves once it is on the server's disk. */
  dispatch(name: NameIn<Agents>, input: DispatchInput, options?: WorkOptions): Promise<DispatchAccepted>;
  /** Opens a WebSocket for several prompts. */
  connect<Name extends NameIn<Agents>>(
    name: Name,
    input: SessionInput,
    options?: CallOptions,
  ): Promise<AgentConnection<OutputOf<Agents[Name]>>>;
  /**
   * Yields the events of an instance, or of one session: those after an index, then each new one; with `now` only the new
   * ones. If the connection breaks, the client reconnects after the last event.
   */
  events(
    name: NameIn<Agents>,
    input: SessionInput & { readonly after?: number | "now" | undefined },
    options?: CallOptions,
  ): AsyncIterable<KitEvent>;
  /** Returns the messages of a session, oldest first. */
  history(
    name: NameIn<Agents>,
    input: SessionInput,
    options?: CallOptions,
  ): Promise<readonly HistoryMessage[]>;
  /**
   * Returns a page of a session's messages; without `before`, the newest ones. To continue without loss or repetition,
   * call `events` with the `event_index` of the newest page.
   */
  historyPage(
    name: NameIn<Agents>,
    input: SessionInput & { readonly limit?: number | undefined; readonly before?: number | undefined },
    options?: CallOptions,
  ): Promise<HistoryPage>;
  /** Returns the operations of an instance, newest first, each with the positions of its events and its usage. */
  operations(
    name: NameIn<Agents>,
    input: InstanceInput & OperationsQuery,
    options?: CallOptions,
  ): Promise<OperationPage>;
  /** Returns a page of the events of an operation and its tasks, oldest first. Throws `not_found`. */
  operationEvents(
    name: NameIn<Agents>,
    input: InstanceInput &
      RunEventsInput & { readonly operation_id: string; readonly first_index?: number | undefined },
    options?: CallOptions,
  ): Promise<OperationEvents>;
  /**
   * Yields the events of an operation and its tasks as they are emitted, from the first one or after an index to the end of the
   * operation; one that is queued is waited for. If the connection breaks, the client reconnects. Throws `not_found`.
   */
  followOperation(
    name: NameIn<Agents>,
    input: InstanceInput & { readonly operation_id: string; readonly after?: number | undefined },
    options?: CallOptions,
  ): AsyncIterable<KitEvent>;
  /** Returns the prompt of a turn as the model got it, and the answer. Throws `not_found`. */
  turn(
    name: NameIn<Agents>,
    input: InstanceInput & TurnQuery & { readonly turn_id: string },
    options?: CallOptions,
  ): Promise<TurnDetail>;
  /**
   * Repeats a turn in a new session, with another model or without rules of the project. Resolves once the input is on
   * the server's disk. Throws `not_found`, and `conflict` for a session that exists.
   */
  fork(
    name: NameIn<Agents>,
    input: InstanceInput & ForkBody & { readonly turn_id: string },
    options?: CallOptions,
  ): Promise<Forked>;
  /**
   * Aborts the running prompts of the session or, without one, of the instance; with `operation_id` only that operation, also if
   * it is still queued. Returns whether there were any.
   */
  abort(
    name: NameIn<Agents>,
    input: SessionInput & { readonly operation_id?: string | undefined },
    options?: CallOptions,
  ): Promise<boolean>;
  /** Deletes the instance: its sessions, workspaces and events. */
  delete(name: NameIn<Agents>, input: InstanceInput, options?: CallOptions): Promise<void>;
  /** Returns the tool calls that wait for approval, oldest first. */
  approvals(
    name: NameIn<Agents>,
    input: SessionInput,
    options?: CallOptions,
  ): Promise<readonly ApprovalRequest[]>;
  /** Approves or denies a tool call. */
  approve(
    name: NameIn<Agents>,
    input: InstanceInput & ApprovalBody & { readonly approval_id: string },
    options?: CallOptions,
  ): Promise<void>;
  /** Returns the rules that would let such calls run without an approval, as kit would write them. */
  allowRules(
    name: NameIn<Agents>,
    input: InstanceInput & { readonly approval_id: string },
    options?: CallOptions,
  ): Promise<AllowChoices>;
  /** Writes one of these rules to the project's `kit.toml`; the call continues to wait for its decision. */
  allow(
    name: NameIn<Agents>,
    input: InstanceInput & { readonly approval_id: string; readonly rule: AllowRule },
    options?: CallOptions,
  ): Promise<AllowedCalls>;
}

export function createAgentsClient(transport: Transport): AgentsClient {
  const { request } = transport;
  return {
    list: async (options) => (await request("GET /agents", { options })).agents,
    invoke: async (name, { id, ...body }, options) =>
      await promptReply(
        transport,
        route("POST /agents/{name}/{id}", { params: { name, id }, body, options }),
      ),
    stream: (name, { id, ...body }, options) =>
      promptStream(transport, route("POST /agents/{name}/{id}", { params: { name, id }, body, options })),
    dispatch: (name, { id, ...body }, options) =>
      request("POST /agents/{name}/{id}/dispatch", { params: { name, id }, body, options }),
    connect: async (name, { id, ...defaults }, options = {}) =>
      await connectAgent(transport, { name, id, defaults, options }),
    events: (name, { id, after, ...query }, options) => {
      const place = after === "now" ? { query: { ...query, after }, after: undefined } : { query, after };
      const call = route("GET /agents/{name}/{id}/events", { params: { name, id }, ...place, options });
      return followEvents(transport, { ...call, after: place.after });
    },
    async history(name, { id, ...query }, options) {
      return (await request("GET /agents/{name}/{id}/history", { params: { name, id }, query, options }))
        .messages;
    },
    historyPage: (name, { id, limit = 50, ...query }, options) =>
      request("GET /agents/{name}/{id}/history", {
        params: { name, id },
        query: { ...query, limit },
        options,
      }),
    operations: (name, { id, ...query }, options) =>
      request("GET /agents/{name}/{id}/operations", { params: { name, id }, query, options }),
    operationEvents: (name, { id, operation_id, ...query }, options) =>
      request("GET /agents/{name}/{id}/operations/{operation_id}/events", {
        params: { name, id, operation_id },
        query,
        options,
      }),
    followOperation: (name, { id, operation_id, after }, options) => {
      const params = { name, id, operation_id };
      const call = route("GET /agents/{name}/{id}/operations/{operation_id}/events", { params, options });
      return followEvents(transport, { ...call, after });
    },
    turn: (name, { id, turn_id, ...query }, options) =>
      request("GET /agents/{name}/{id}/turns/{turn_id}", { params: { name, id, turn_id }, query, options }),
    fork: (name, { id, turn_id, ...body }, options) =>
      request("POST /agents/{name}/{id}/turns/{turn_id}/fork", {
        params: { name, id, turn_id },
        body,
        options,
      }),
    async abort(name, { id, ...body }, options) {
      const call = { params: { name, id }, body, options, repeatable: true } as const;
      return (await request("POST /agents/{name}/{id}/abort", call)).aborted;
    },
    async delete(name, { id }, options) {
      await request("DELETE /agents/{name}/{id}", { params: { name, id }, options });
    },
    async approvals(name, { id, ...query }, options) {
      return (await request("GET /agents/{name}/{id}/approvals", { params: { name, id }, query, options }))
        .approvals;
    },
    async approve(name, { id, approval_id, ...body }, options) {
      const call = { params: { name, id, approval_id }, body, options };
      await request("POST /agents/{name}/{id}/approvals/{approval_id}", call);
    },
    async allowRules(name, { id, approval_id }, options) {
      const call = { params: { name, id, approval_id }, options };
      return await request("GET /agents/{name}/{id}/approvals/{approval_id}/rules", call);
    },
    async allow(name, { id, approval_id, rule }, options) {
      const call = { params: { name, id, approval_id }, body: { rule }, options };
      return await request("POST /agents/{name}/{id}/approvals/{approval_id}/rules", call);
    },
  };
}
