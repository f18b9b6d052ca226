import type { Approvals } from "../../agents/approvals/approvals.ts";
import { endsWithin } from "../../base/abort.ts";
import { KitError } from "../../base/kit-error.ts";
import type { Engine } from "../../engine/contract.ts";
import type { DispatchStatus } from "../../protocol/dispatch.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { agentStream } from "../../protocol/session-name.ts";
import type { FullStore } from "../../stores/full-store.ts";
import type { AbortTarget, NodeCalls } from "../cluster/node-calls.ts";
import type { Owners } from "../cluster/owners.ts";
import type { Instances } from "../runtime/instances.ts";
import type { Sources } from "../sources/sources.ts";
import type { InstanceTarget, Service } from "./service.ts";
import type { SessionWork } from "./session-work.ts";

/** How long a removal waits for the ends of the inputs that it has cancelled. */
const endPatienceMs = 5_000;

interface InstanceAdminOptions {
  readonly sources: Pick<Sources, "checkAgent">;
  readonly instances: Instances;
  readonly engine: Engine;
  readonly approvals: Pick<Approvals, "list">;
  readonly work: SessionWork;
  readonly store: FullStore;
  readonly owners: Owners;
}

export interface InstanceAdmin {
  /** Calls for any instance, which its owner answers. */
  readonly routed: Pick<
    Service,
    | "history"
    | "historyPage"
    | "operations"
    | "operationEvents"
    | "followOperation"
    | "turn"
    | "atWork"
    | "abort"
    | "remove"
    | "events"
  >;
  /** Calls for instances that this node owns, whose agents the callers have checked. */
  readonly answers: Pick<NodeCalls, "history" | "historyPage" | "atWork" | "abort" | "remove">;
}

/** Reads, aborts and removes instances. */
export function createInstanceAdmin({
  sources,
  instances,
  engine,
  approvals,
  work,
  store,
  owners,
}: InstanceAdminOptions): InstanceAdmin {
  /** Cancels the accepted inputs of an instance, or of one of its sessions, that have a status. Returns their ids. */
  const cancel = async (
    { agent, instance_id, session }: InstanceTarget & { readonly session?: string | undefined },
    status: DispatchStatus,
  ): Promise<readonly string[]> => {
    const cancelled: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await engine.listDispatches({
        agent,
        instance_id,
        status,
        limit: 1_000,
        cursor,
      });
      for (const dispatch of page.items) {
        if (session !== undefined && dispatch.session !== session) continue;
        if (await engine.cancelDispatch(dispatch.dispatch_id)) cancelled.push(dispatch.dispatch_id);
      }
      cursor = page.next_cursor;
    } while (cursor !== undefined);
    return cancelled;
  };
  /** Cancels the accepted input of an operation, also if it is queued. Returns the input's id if it was open. */
  const cancelOperation = async ({
    operation_id = "",
    ...target
  }: AbortTarget): Promise<readonly string[]> => {
    const { findDispatch } = await import("./follow-operation.ts");
    const dispatch = await findDispatch(engine, { ...target, operation_id });
    if (dispatch === undefined || (target.session ?? dispatch.session) !== dispatch.session) return [];
    return (await engine.cancelDispatch(dispatch.dispatch_id)) ? [dispatch.dispatch_id] : [];
  };
  const abort: NodeCalls["abort"] = async (target) => {
    const running = work.running(target);
    // Cancel the accepted input, or the engine would record the abort as a failure.
    const cancelled =
      target.operation_id === undefined ? await cancel(target, "running") : await cancelOperation(target);
    const aborted = await Promise.all(running.map((input) => input.abort()));
    await Promise.all(running.map(({ ended }) => ended));
    return cancelled.length > 0 || aborted.includes(true);
  };

  const answers: InstanceAdmin["answers"] = {
    async history(target) {
      // Another node can have worked for the instance since this node opened it.
      if (!work.isCurrent(target, owners.fence(target))) await instances.release(target);
      const live = await instances.get(target);
      const existing = await live.sessions.get(target.session);
      if (existing !== undefined) return existing.history();
      throw noSession(target);
    },
    async historyPage({ target: key, query }) {
      const isAtWork = (): boolean => work.running(key).length > 0 || instances.isBusy(key);
      const { readLogPage } = await import("./log-page.ts");
      const page = await readLogPage({ store, events: engine.events, isAtWork }, key, query);
      if (page === undefined) throw noSession(key);
      return page;
    },
    atWork: async () => work.sessions(),
    abort,
    async remove(target) {
      const cancelled = await cancel(target, "queued");
      const aborted = await abort(target);
      // The last events of their operations come before the stream is deleted.
      await endsWithin(endPatienceMs, Promise.all(cancelled.map((id) => engine.awaitDispatch(id))));
      const live = await instances.get(target);
      const sessions = await live.sessions.list();
      for (const { session, parent } of sessions)
        if (parent === undefined) await live.sessions.delete(session);
      await instances.release(target);
      const stream = agentStream(target.agent, target.instance_id);
      const hasEvents = (await engine.events.last(stream)) > 0;
      await engine.events.delete(stream);
      return cancelled.length > 0 || aborted || sessions.length > 0 || hasEvents;
    },
  };
  const log = owners.events;
  const checked = <Target extends { readonly agent: string }>(target: Target): Target => {
    sources.checkAgent(target.agent);
    return target;
  };
  const routed: InstanceAdmin["routed"] = {
    async operations(target, query = {}) {
      const { listOperations } = await import("./list-operations.ts");
      return await listOperations({ events: log, engine, approvals }, checked(target), query);
    },
    async operationEvents(target, query = {}) {
      const { readOperationEvents } = await import("./trace.ts");
      return await readOperationEvents({ events: log }, checked(target), query);
    },
    async followOperation(target, options) {
      const { followOperation } = await import("./follow-operation.ts");
      return await followOperation({ events: log, engine }, checked(target), options);
    },
    async turn(target, query = {}) {
      const { readTurn } = await import("./trace.ts");
      return await readTurn({ store, events: log }, checked(target), query);
    },
    history: async (target) => await owners.read("history", checked(target)),
    historyPage: async (target, query) =>
      await owners.read("historyPage", { target: checked(target), query }),
    atWork: () => owners.atWork(),
    abort: async (target) => await owners.ask("abort", checked(target)),
    remove: async (target) => await owners.ask("remove", checked(target)),
    events(target, { session, ...subscription }) {
      checked(target);
      const all = log.subscribe(agentStream(target.agent, target.instance_id), subscription);
      return session === undefined ? all : ofSession(all, session);
    },
  };
  return { routed, answers };
}

function noSession({ instance_id, session }: SessionKey): KitError {
  return new KitError({
    code: "not_found",
    message: `The instance "${instance_id}" has no session "${session}".`,
  });
}

/** Filters the events of a session and of its tasks, whose session names begin with the session's name. */
async function* ofSession(events: AsyncIterable<KitEvent>, session: string): AsyncGenerator<KitEvent> {
  const taskPrefix = `${session.slice(0, 80)}.task_`;
  for await (const event of events) {
    if (event.type === "gap" || event.session === session || event.session?.startsWith(taskPrefix))
      yield event;
  }
}

/** Resolves once no accepted input waits or runs. */
export async function finishDispatches(engine: Engine): Promise<void> {
  for (const status of ["queued", "running"] as const) {
    for (;;) {
      const { items } = await engine.listDispatches({ status });
      if (items.length === 0) break;
      await Promise.all(items.map(({ dispatch_id }) => engine.awaitDispatch(dispatch_id)));
    }
  }
}
