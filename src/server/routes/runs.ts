import { toSentDispatch } from "../../app/service/stored-input.ts";
import { KitError } from "../../base/kit-error.ts";
import { clusterStateOf } from "../../engine/cluster-state.ts";
import { runStream } from "../../engine/event-log-contract.ts";
import type { ServiceAction } from "../../protocol/access.ts";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import { clusterRoutes, dispatchRoutes, runRoutes } from "../../protocol/routes/run-routes.ts";
import type { RunRecord } from "../../protocol/run.ts";
import { emptyReply } from "../reply.ts";
import { isReconnect, readEventPosition, readIdempotencyKey } from "../request/read-request.ts";
import { bindRoutes, type Guard, type Handlers, type Route, type RouteRequest } from "../route.ts";
import type { WorkContext } from "../service-context.ts";
import { isOver, streamRun } from "../streams/run-stream.ts";

const defaultPageSize = 100;

/** Codes of errors that concern one dead letter and not the engine. */
const passing: ReadonlySet<string> = new Set(["conflict", "not_found", "too_many_requests"]);

type Found<Parameter extends string> = Pick<RouteRequest<Parameter>, "segment" | "principal"> & {
  readonly action: ServiceAction;
};

/** Checks the sender's permission for the record of a request that changes something, before its body is read. */
function guardedBy<Parameter extends string>(find: (request: Found<Parameter>) => Promise<unknown>): Guard {
  return async (request) => {
    // Dead letters are retried by a filter, which is in the body.
    if (request.raw.method !== "POST" || request.action === "dispatch.list") return;
    await find(request as RouteRequest<string> as Found<Parameter>);
  };
}

/** `/runs`: runs of workflows, their events, and signals to those that wait. */
export function bindRunRoutes(context: WorkContext): readonly Route[] {
  const { authorization } = context;
  const { engine } = context.service;
  /** Returns the run of a request after checking the sender's permission. */
  const find = async ({ segment, principal, action }: Found<"run_id">): Promise<RunRecord> => {
    const record = await engine.getRun(segment("run_id"));
    const missing = new KitError({ code: "run_not_found", message: "There is no such run." });
    if (record === undefined) throw missing;
    const { workflow, run_id } = record;
    await authorization.checkFound({ principal, action, workflow, run_id }, { reading: "run.read", missing });
    return record;
  };
  const handlers: Handlers<typeof runRoutes> = {
    async "GET /runs"({ query, principal, action, itemAction }) {
      await authorization.check({ principal, action, workflow: query.workflow });
      const { items: runs, next_cursor } = await authorization.page(
        (from) => engine.listRuns({ ...query, ...from }),
        ({ workflow, run_id }) => ({ principal, action: itemAction, workflow, run_id }),
      );
      return { runs, next_cursor };
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
  /** Returns the dispatch of a request after checking the sender's permission. */
  const find = async ({ segment, principal, action }: Found<"dispatch_id">): Promise<DispatchRecord> => {
    const record = await engine.getDispatch(segment("dispatch_id"));
    const missing = new KitError({ code: "not_found", message: "There is no such dispatch." });
    if (record === undefined) throw missing;
    const { agent, instance_id: instance } = record;
    await authorization.checkFound(
      { principal, action, agent, instance },
      { reading: "dispatch.read", missing },
    );
    return record;
  };
  const handlers: Handlers<typeof dispatchRoutes> = {
    async "GET /dispatches"({ query, principal, action, itemAction }) {
      const { agent, instance_id: instance } = query;
      await authorization.check({ principal, action, agent, instance });
      const { items, next_cursor } = await authorization.page(
        (from) => engine.listDispatches({ ...query, ...from }),
        (record) => ({
          principal,
          action: itemAction,
          agent: record.agent,
          instance: record.instance_id,
        }),
      );
      return { dispatches: items.map(toSentDispatch), next_cursor };
    },
    async "POST /dispatches/retry"({ body, principal, action, itemAction }) {
      const { agent, instance_id: instance, limit = 100 } = body;
      await authorization.check({ principal, action, agent, instance });
      const { items, next_cursor } = await engine.listDeadLetters({ ...body, limit });
      const letters = await authorization.permitted(items, (record) => ({
        principal,
        action: itemAction,
        agent: record.agent,
        instance: record.instance_id,
      }));
      const retried: string[] = [];
      const failed: { dispatch_id: string; error: { type: string; message: string } }[] = [];
      for (const { dispatch_id } of letters) {
        try {
          await engine.redrive(dispatch_id);
          retried.push(dispatch_id);
        } catch (error) {
          // A dead letter that cannot be retried, because it has changed or its line is full, does not stop the others.
          if (!(error instanceof KitError) || !passing.has(error.code)) throw error;
          failed.push({ dispatch_id, error: { type: error.code, message: error.message } });
        }
      }
      return { retried, failed, next_cursor };
    },
    "GET /dispatches/{dispatch_id}": async (input) => toSentDispatch(await find(input)),
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
