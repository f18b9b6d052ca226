import { KitError } from "../../base/kit-error.ts";
import type { Engine } from "../../engine/contract.ts";
import { agentStream } from "../../engine/event-log-contract.ts";
import type { DispatchStatus } from "../../protocol/dispatch.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { SessionStore } from "../../stores/contract.ts";
import type { NodeCalls } from "../cluster/node-calls.ts";
import type { ServiceCluster } from "../cluster/service-cluster.ts";
import type { Instances } from "../runtime/instances.ts";
import type { Sources } from "../sources/sources.ts";
import type { SessionWork } from "./prompts.ts";
import type { InstanceTarget, Service } from "./service.ts";

interface InstanceAdminOptions {
  readonly sources: Pick<Sources, "checkAgent">;
  readonly instances: Instances;
  readonly engine: Engine;
  readonly work: SessionWork;
  readonly store: SessionStore;
  /** The other nodes of a cluster. */
  readonly nodes: ServiceCluster | undefined;
}

interface InstanceAdmin {
  /** Calls for any instance: in a cluster, they ask the node that owns the instance. */
  readonly routed: Pick<
    Service,
    | "history"
    | "historyPage"
    | "operations"
    | "operationEvents"
    | "turn"
    | "working"
    | "abort"
    | "remove"
    | "events"
  >;
  /** Calls for instances that this node owns. */
  readonly answers: Pick<NodeCalls, "history" | "historyPage" | "working" | "abort" | "remove">;
}

/** Reads, aborts and removes instances. */
export function createInstanceAdmin({
  sources,
  instances,
  engine,
  work,
  store,
  nodes,
}: InstanceAdminOptions): InstanceAdmin {
  /** Cancels the accepted inputs of an instance, or of one of its sessions, that have a status. */
  const cancel = async (
    { agent, instance_id, session }: InstanceTarget & { readonly session?: string | undefined },
    status: DispatchStatus,
  ): Promise<boolean> => {
    let cancelled = false;
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
        if (await engine.cancelDispatch(dispatch.dispatch_id)) cancelled = true;
      }
      cursor = page.next_cursor;
    } while (cursor !== undefined);
    return cancelled;
  };
  const abort: NodeCalls["abort"] = async (target) => {
    sources.checkAgent(target.agent);
    const running = work.running(target);
    // Cancel the accepted input, or the engine would record the abort as a failure.
    const cancelled = await cancel(target, "running");
    const aborted = await Promise.all(running.map((input) => input.abort()));
    await Promise.all(running.map(({ ended }) => ended));
    return cancelled || aborted.includes(true);
  };

  const answers: InstanceAdmin["answers"] = {
    async history({ agent, instance_id, session }) {
      sources.checkAgent(agent);
      // Another node can have worked for the instance since this node opened it.
      if (nodes !== undefined && !work.isCurrent({ agent, instance_id }, nodes.fence({ agent, instance_id })))
        await instances.release(agent, instance_id);
      const live = await instances.get({ name: agent, id: instance_id, payload: {} });
      const existing = await live.sessions.get(session);
      if (existing !== undefined) return existing.history();
      throw noSession(instance_id, session);
    },
    async historyPage({ target: key, query }) {
      const { agent, instance_id, session } = key;
      sources.checkAgent(agent);
      const isAtWork = (): boolean => work.running(key).length > 0 || instances.isBusy(agent, instance_id);
      const { readLogPage } = await import("./log-page.ts");
      const page = await readLogPage({ store, events: engine.events, isAtWork }, key, query);
      if (page === undefined) throw noSession(instance_id, session);
      return page;
    },
    working: async (sessions) => sessions.map((key) => work.running(key).length > 0),
    abort,
    async remove(target) {
      const { agent, instance_id } = target;
      sources.checkAgent(agent);
      const cancelled = await cancel(target, "queued");
      const aborted = await abort(target);
      const live = await instances.get({ name: agent, id: instance_id, payload: {} });
      const sessions = await live.sessions.list();
      for (const { session, parent } of sessions)
        if (parent === undefined) await live.sessions.delete(session);
      await instances.release(agent, instance_id);
      const stream = agentStream(agent, instance_id);
      const hasEvents = (await engine.events.last(stream)) > 0;
      await engine.events.delete(stream);
      return cancelled || aborted || sessions.length > 0 || hasEvents;
    },
  };
  const log = nodes?.events ?? engine.events;
  const routed: InstanceAdmin["routed"] = {
    async operations(target, query = {}) {
      sources.checkAgent(target.agent);
      const { listOperations } = await import("./trace.ts");
      return await listOperations({ events: log }, target, query);
    },
    async operationEvents(target, query = {}) {
      sources.checkAgent(target.agent);
      const { readOperationEvents } = await import("./trace.ts");
      return await readOperationEvents({ events: log }, target, query);
    },
    async turn(target, query = {}) {
      sources.checkAgent(target.agent);
      const { readTurn } = await import("./trace.ts");
      return await readTurn({ store, events: log }, target, query);
    },
    async history(target) {
      sources.checkAgent(target.agent);
      return await (nodes === undefined ? answers.history(target) : nodes.read("history", target));
    },
    async historyPage(target, query) {
      sources.checkAgent(target.agent);
      const request = { target, query };
      return await (nodes === undefined ? answers.historyPage(request) : nodes.read("historyPage", request));
    },
    working: async (sessions) =>
      await (nodes === undefined ? answers.working(sessions) : nodes.working(sessions)),
    async abort(target) {
      sources.checkAgent(target.agent);
      return await (nodes === undefined ? abort(target) : nodes.ask("abort", target));
    },
    async remove(target) {
      sources.checkAgent(target.agent);
      return await (nodes === undefined ? answers.remove(target) : nodes.ask("remove", target));
    },
    events(target, { session, ...subscription }) {
      sources.checkAgent(target.agent);
      const all = log.subscribe(agentStream(target.agent, target.instance_id), subscription);
      return session === undefined ? all : ofSession(all, session);
    },
  };
  return { routed, answers };
}

function noSession(instanceId: string, session: string): KitError {
  return new KitError({
    code: "not_found",
    message: `The instance "${instanceId}" has no session "${session}".`,
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
