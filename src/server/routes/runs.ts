import { toSentDispatch } from "../../app/service/stored-input.ts";
import { KitError } from "../../base/kit-error.ts";
import { toTimes } from "../../base/time-range.ts";
import { clusterStateOf } from "../../engine/cluster-state.ts";
import type { Page } from "../../engine/contract.ts";
import type { CallFilter } from "../../engine/waiting-calls-contract.ts";
import type { AuthorizeRequest, ServiceAction } from "../../protocol/access.ts";
import type {
  CancelManyBody,
  DispatchRecord,
  DispatchStatus,
  RetryManyBody,
} from "../../protocol/dispatch.ts";
import { openDispatchStatuses, openRunStatuses } from "../../protocol/enums.ts";
import { clusterRoutes, dispatchRoutes, runRoutes } from "../../protocol/routes/run-routes.ts";
import type { CancelRunsBody, RetryRunsBody, RunRecord, RunStatus } from "../../protocol/run.ts";
import { runStream } from "../../protocol/session-name.ts";
import type { Authorization } from "../access/authorize.ts";
import { emptyReply } from "../reply.ts";
import { isReconnect, readEventPosition, readIdempotencyKey } from "../request/read-request.ts";
import { bindRoutes, type Guard, type Handlers, type Route, type RouteRequest } from "../route.ts";
import type { WorkContext } from "../service-context.ts";
import { isOver, streamRun } from "../streams/run-stream.ts";

const defaultPageSize = 100;

/** The records that a request checks if it names no limit. */
const defaultChanges = 100;

type Found<Parameter extends string> = Pick<RouteRequest<Parameter>, "segment" | "principal"> & {
  readonly action: ServiceAction;
};

/** Checks the sender's permission for the record of a request that changes something, before its body is read. */
function guardedBy<Parameter extends string>(find: (request: Found<Parameter>) => Promise<unknown>): Guard {
  return async (request) => {
    // Requests that change several records name them in the body.
    const isList = request.action === "dispatch.list" || request.action === "run.list";
    if (request.raw.method !== "POST" || isList) return;
    await find(request as RouteRequest<string> as Found<Parameter>);
  };
}

/** `/runs`: runs of workflows, their events, and signals to those that wait. */
export function bindRunRoutes(context: WorkContext): readonly Route[] {
  const { authorization } = context;
  const { engine } = context.service;
  /** Returns a run after checking the sender's permission. */
  const findRun = async (
    id: string,
    { principal, action }: Pick<Found<"run_id">, "principal" | "action">,
  ): Promise<RunRecord> => {
    const record = await engine.getRun(id);
    const missing = new KitError({ code: "run_not_found", message: "There is no such run." });
    if (record === undefined) throw missing;
    const { workflow, run_id } = record;
    await authorization.checkFound({ principal, action, workflow, run_id }, { reading: "run.read", missing });
    return record;
  };
  const find = ({ segment, ...sender }: Found<"run_id">): Promise<RunRecord> =>
    findRun(segment("run_id"), sender);
  type ManyRuns = Pick<RouteRequest, "principal"> & {
    readonly body: CancelRunsBody | RetryRunsBody;
    readonly action: ServiceAction;
    readonly itemAction: ServiceAction;
  };
  /** Changes the runs of a request: those that it names, or a page of those with one of the statuses. */
  const changeRuns = async (
    { body, principal, action, itemAction }: ManyRuns,
    status: readonly RunStatus[],
    change: (id: string) => Promise<unknown>,
  ) => {
    const { ids, limit = defaultChanges, ...filter } = body;
    const { workflow } = filter;
    await authorization.check({ principal, action, workflow });
    const { changed, failures, next_cursor } = await changeMany<RunRecord>({
      selected: ids ?? (await engine.listRuns({ ...filter, ...toTimes(filter), status, limit })),
      authorization,
      idOf: ({ run_id }) => run_id,
      ask: ({ workflow: name, run_id }) => ({ principal, action: itemAction, workflow: name, run_id }),
      find: (id) => findRun(id, { principal, action: itemAction }),
      change,
    });
    const failed = failures.map(({ id: run_id, error }) => ({ run_id, error }));
    return { changed, failed, next_cursor };
  };
  const handlers: Handlers<typeof runRoutes> = {
    async "GET /runs"({ query, principal, action, itemAction }) {
      await authorization.check({ principal, action, workflow: query.workflow });
      const { items: runs, ...rest } = await authorization.page(
        (from) => engine.listRuns({ ...query, ...toTimes(query), ...from }),
        ({ workflow, run_id }) => ({ principal, action: itemAction, workflow, run_id }),
      );
      return { runs, ...rest };
    },
    async "POST /runs/cancel"(input) {
      const { status } = input.body;
      const statuses = status === undefined ? openRunStatuses : [status];
      const { changed: cancelled, ...rest } = await changeRuns(input, statuses, async (id) => {
        if (!(await engine.cancelRun(id))) throw alreadyEnded();
      });
      return { cancelled, ...rest };
    },
    async "POST /runs/retry"(input) {
      const { changed: retried, ...rest } = await changeRuns(input, ["failed"], (id) => engine.retryRun(id));
      return { retried, ...rest };
    },
    "GET /runs/{run_id}": find,
    async "GET /runs/{run_id}/events"(input) {
      const { run_id } = await find(input);
      const { limit = defaultPageSize, ...rest } = input.query;
      const events = await engine.events.read(runStream(run_id), { ...rest, limit });
      const last = events.length < limit ? undefined : events.at(-1);
      return { events, next_after: last?.index };
    },
    async "GET /runs/{run_id}/journal"(input) {
      const { run_id } = await find(input);
      const { after = 0, limit = defaultPageSize } = input.query;
      if (engine.readJournal === undefined)
        throw new KitError({ code: "unavailable", message: "The engine has no journal that can be read." });
      const entries = (await engine.readJournal(run_id, { after, limit })) ?? [];
      return { entries, next_after: entries.length < limit ? undefined : entries.at(-1)?.position };
    },
    async "GET /runs/{run_id}/stream"(input) {
      const { principal, action } = input;
      const position = readEventPosition(input, input.query);
      const run = await find(input);
      const { workflow, run_id } = run;
      const after = position === "now" ? await engine.events.last(runStream(run_id)) : position;
      // A reader that reconnects after the end gets 204, so that it does not reconnect again.
      if (isReconnect(input) && (await isOver(engine, run, after ?? 0))) return emptyReply({});
      const permit = authorization.whilePermitted({ principal, action, workflow, run_id });
      return streamRun(context, run_id, { slot: context.streams.reserve(principal), permit, after });
    },
    "POST /runs/{run_id}/retry": async (input) => await engine.retryRun(input.segment("run_id")),
    "POST /runs/{run_id}/cancel": async (input) => ({
      cancelled: await engine.cancelRun(input.segment("run_id")),
    }),
    async "POST /runs/{run_id}/signal"(input) {
      const run_id = input.segment("run_id");
      const key = readIdempotencyKey(input);
      await engine.signal(run_id, {
        ...input.body,
        idempotency_key: key,
      });
      return { status: "accepted" };
    },
  };
  return bindRoutes(runRoutes, handlers, guardedBy(find));
}

/** `/dispatches`: dispatched inputs, and retries of dead letters. */
export function bindDispatchRoutes({ service, authorization }: WorkContext): readonly Route[] {
  const { engine } = service;
  /** Returns a dispatch after checking the sender's permission. */
  const findDispatch = async (
    id: string,
    { principal, action }: Pick<Found<"dispatch_id">, "principal" | "action">,
  ): Promise<DispatchRecord> => {
    const record = await engine.getDispatch(id);
    const missing = new KitError({ code: "not_found", message: "There is no such dispatch." });
    if (record === undefined) throw missing;
    const { agent, instance_id: instance } = record;
    await authorization.checkFound(
      { principal, action, agent, instance },
      { reading: "dispatch.read", missing },
    );
    return record;
  };
  const find = ({ segment, ...sender }: Found<"dispatch_id">): Promise<DispatchRecord> =>
    findDispatch(segment("dispatch_id"), sender);
  type ManyDispatches = Pick<RouteRequest, "principal"> & {
    readonly body: CancelManyBody | RetryManyBody;
    readonly action: ServiceAction;
    readonly itemAction: ServiceAction;
  };
  /** Changes the dispatches of a request: those that it names, or a page of those with one of the statuses. */
  const changeDispatches = async (
    { body, principal, action, itemAction }: ManyDispatches,
    status: readonly DispatchStatus[],
    change: (id: string) => Promise<unknown>,
  ) => {
    const { ids, limit = defaultChanges, ...filter } = body;
    await authorization.check({ principal, action, agent: filter.agent, instance: filter.instance_id });
    const { changed, failures, next_cursor } = await changeMany<DispatchRecord>({
      selected: ids ?? (await engine.listDispatches({ ...filter, ...toTimes(filter), status, limit })),
      authorization,
      idOf: ({ dispatch_id }) => dispatch_id,
      ask: ({ agent, instance_id: instance }) => ({ principal, action: itemAction, agent, instance }),
      find: (id) => findDispatch(id, { principal, action: itemAction }),
      change,
    });
    const failed = failures.map(({ id: dispatch_id, error }) => ({ dispatch_id, error }));
    return { changed, failed, next_cursor };
  };
  /** Converts records for a reply, with the calls of running work that wait. */
  const toReplies = async (
    records: readonly DispatchRecord[],
    within: CallFilter,
  ): Promise<readonly DispatchRecord[]> => {
    const isRunning = records.some(({ status }) => status === "running");
    const calls = isRunning ? ((await engine.waitingCalls?.list(within)) ?? []) : [];
    const waiting = new Set(calls.map(({ dispatch_id }) => dispatch_id));
    return records.map((record) => {
      const waits = record.status === "running" && waiting.has(record.dispatch_id);
      return { ...toSentDispatch(record), ...(waits ? { waits_for_approval: true as const } : {}) };
    });
  };
  const handlers: Handlers<typeof dispatchRoutes> = {
    async "GET /dispatches"({ query, principal, action, itemAction }) {
      const { agent, instance_id: instance } = query;
      await authorization.check({ principal, action, agent, instance });
      const { items, ...rest } = await authorization.page(
        (from) => engine.listDispatches({ ...query, ...toTimes(query), ...from }),
        (record) => ({
          principal,
          action: itemAction,
          agent: record.agent,
          instance: record.instance_id,
        }),
      );
      return { dispatches: await toReplies(items, { agent, instance_id: instance }), ...rest };
    },
    async "POST /dispatches/retry"(input) {
      const { changed: retried, ...rest } = await changeDispatches(input, ["failed"], (id) =>
        engine.redrive(id),
      );
      return { retried, ...rest };
    },
    async "POST /dispatches/cancel"(input) {
      const { status } = input.body;
      const statuses = status === undefined ? openDispatchStatuses : [status];
      const { changed: cancelled, ...rest } = await changeDispatches(input, statuses, async (id) => {
        if (!(await engine.cancelDispatch(id))) throw alreadyEnded();
      });
      return { cancelled, ...rest };
    },
    async "GET /dispatches/{dispatch_id}"(input) {
      const record = await find(input);
      const { agent, instance_id } = record;
      const [reply = record] = await toReplies([record], { agent, instance_id });
      return reply;
    },
    "POST /dispatches/{dispatch_id}/retry": async (input) =>
      toSentDispatch(await engine.redrive(input.segment("dispatch_id"))),
    "POST /dispatches/{dispatch_id}/cancel": async (input) => ({
      cancelled: await engine.cancelDispatch(input.segment("dispatch_id")),
    }),
  };
  return bindRoutes(dispatchRoutes, handlers, guardedBy(find));
}

/** `/cluster`: the processes that share the work. */
export function bindClusterRoutes({ service, authorization }: WorkContext): readonly Route[] {
  const handlers: Handlers<typeof clusterRoutes> = {
    async "GET /cluster"({ principal, action }) {
      await authorization.check({ principal, action });
      return await clusterStateOf(service.engine);
    },
  };
  return bindRoutes(clusterRoutes, handlers);
}

/** Codes of errors that concern one record and not the engine. */
const passing: ReadonlySet<string> = new Set([
  "conflict",
  "not_found",
  "run_not_found",
  "forbidden",
  "too_many_requests",
]);

/** The most records that change at the same time. */
const atOnce = 50;

interface Failure {
  readonly id: string;
  readonly error: { readonly type: string; readonly message: string };
}

interface ManyRecords<Item> {
  /** The ids of the request, or a page of the records that its filter selects. */
  readonly selected: readonly string[] | Page<Item>;
  readonly authorization: Authorization;
  readonly idOf: (item: Item) => string;
  /** The question whether the sender may change a record. */
  readonly ask: (item: Item) => AuthorizeRequest;
  /** Finds a record by its id, after checking the sender's permission to change it. Throws otherwise. */
  readonly find: (id: string) => Promise<unknown>;
  /** Changes a record. Throws if it cannot be changed. */
  readonly change: (id: string) => Promise<unknown>;
}

/**
 * Changes several records. A record that cannot be changed, because it has changed or a queue is full, does not stop the others.
 * Without a permission for it, a record of a filter is left out, and one that the request names is a failure.
 */
async function changeMany<Item>({
  selected,
  authorization,
  idOf,
  ask,
  find,
  change,
}: ManyRecords<Item>): Promise<{
  readonly changed: readonly string[];
  readonly failures: readonly Failure[];
  readonly next_cursor: string | undefined;
}> {
  const isNamed = !("items" in selected);
  const ids = isNamed
    ? [...new Set(selected)]
    : (await authorization.permitted(selected.items, ask)).map((item) => idOf(item));
  const changed: string[] = [];
  const failures: Failure[] = [];
  const changeOne = async (id: string): Promise<void> => {
    try {
      if (isNamed) await find(id);
      await change(id);
      changed.push(id);
    } catch (error) {
      if (!(error instanceof KitError) || !passing.has(error.code)) throw error;
      failures.push({ id, error: { type: error.code, message: error.message } });
    }
  };
  for (let next = 0; next < ids.length; next += atOnce)
    await Promise.all(ids.slice(next, next + atOnce).map(changeOne));
  return { changed, failures, next_cursor: isNamed ? undefined : selected.next_cursor };
}

function alreadyEnded(): KitError {
  return new KitError({ code: "conflict", message: "It had ended already." });
}
