import { KitError } from "../../base/kit-error.ts";
import { runStream } from "../../engine/contract.ts";
import type { ServiceAction } from "../../protocol/access.ts";
import { cancelledSchema } from "../../protocol/dispatch.ts";
import { eventSchema } from "../../protocol/event.ts";
import { emptyBodySchema } from "../../protocol/fields.ts";
import type { RunRecord } from "../../protocol/run.ts";
import {
  runEventPageSchema,
  runEventsQuerySchema,
  runPageSchema,
  runQuerySchema,
  runRecordSchema,
  runStreamQuerySchema,
  signalAcceptedSchema,
  signalBodySchema,
} from "../../protocol/run.ts";
import { emptyReply } from "../reply.ts";
import { isReconnect, readEventPosition, readIdempotencyKey } from "../request/read-headers.ts";
import { defineRoute, type Route, type RouteRequest } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";
import { isOver, streamRun } from "../stream/run-stream.ts";

const tag = "runs";
const parameters = { run_id: "`run_` and a ULID." };
const defaultPageSize = 100;

/** `/runs`: what became of workflows, their events, and signals to those that wait. */
export function runRoutes(context: ServiceContext): readonly Route[] {
  const { service, authorization } = context;
  const { engine } = service;
  /** The run of a request whose sender may do this with it. */
  const find = async ({ segment, principal }: RouteRequest, action: ServiceAction): Promise<RunRecord> => {
    const record = await engine.getRun(segment("run_id"));
    if (record === undefined) throw new KitError({ code: "run_not_found", message: "There is no such run." });
    await authorization.check({ principal, action, workflow: record.workflow, run_id: record.run_id });
    return record;
  };
  return [
    defineRoute({
      operation: "listRuns",
      method: "GET",
      path: "/runs",
      summary: "Runs, newest first",
      tag,
      query: runQuerySchema,
      reply: runPageSchema,
      async handle({ query, principal }) {
        const { workflow } = query;
        await authorization.check({
          principal,
          action: "run.list",
          ...(workflow === undefined ? {} : { workflow }),
        });
        const { items, next_cursor } = await engine.listRuns(query);
        const runs = await authorization.permitted(items, ({ workflow, run_id }) => ({
          principal,
          action: "run.read",
          workflow,
          run_id,
        }));
        return { runs, next_cursor };
      },
    }),
    defineRoute({
      operation: "getRun",
      method: "GET",
      path: "/runs/{run_id}",
      summary: "One run",
      tag,
      parameters,
      reply: runRecordSchema,
      errors: ["run_not_found"],
      handle: (input) => find(input, "run.read"),
    }),
    defineRoute({
      operation: "listRunEvents",
      method: "GET",
      path: "/runs/{run_id}/events",
      summary: "The events of a run, oldest first",
      tag,
      parameters,
      query: runEventsQuerySchema,
      reply: runEventPageSchema,
      errors: ["run_not_found"],
      async handle(input) {
        const { run_id } = await find(input, "run.read");
        const { limit = defaultPageSize, ...rest } = input.query;
        const events = await engine.events.read(runStream(run_id), { ...rest, limit });
        const last = events.length < limit ? undefined : events.at(-1);
        return { events, next_after: last?.index };
      },
    }),
    defineRoute({
      operation: "streamRunEvents",
      method: "GET",
      path: "/runs/{run_id}/stream",
      summary: "The events of a run as they are made, to its end",
      description:
        "From the first event, or after the one that `Last-Event-ID` or `after` names. The last event is one `result` or `error`; who connects again after it with `Last-Event-ID` gets 204.",
      tag,
      parameters,
      headers: ["Last-Event-ID"],
      query: runStreamQuerySchema,
      reply: eventSchema,
      stream: "always",
      errors: ["run_not_found", "unavailable", "store_unavailable"],
      async handle(input) {
        const after = readEventPosition(input, input.query);
        const run = await find(input, "run.read");
        const { workflow, run_id } = run;
        // A reader that connects again after the end must not connect once more.
        if (isReconnect(input) && (await isOver(service, run, after ?? 0))) return emptyReply({});
        const { principal } = input;
        const permit = authorization.whilePermitted({ principal, action: "run.read", workflow, run_id });
        const place = context.streams.reserve(principal);
        return streamRun(context, run_id, { place, permit, ...(after === undefined ? {} : { after }) });
      },
    }),
    defineRoute({
      operation: "cancelRun",
      method: "POST",
      path: "/runs/{run_id}/cancel",
      summary: "Cancel a run",
      tag,
      parameters,
      body: emptyBodySchema,
      reply: cancelledSchema,
      errors: ["run_not_found"],
      handle: async (input) => ({
        cancelled: await engine.cancelRun((await find(input, "run.cancel")).run_id),
      }),
    }),
    defineRoute({
      operation: "signalRun",
      method: "POST",
      path: "/runs/{run_id}/signal",
      summary: "Hand a run the value that it waits for",
      description: "What comes before the run waits for it is kept.",
      tag,
      parameters,
      headers: ["Idempotency-Key"],
      body: signalBodySchema,
      reply: signalAcceptedSchema,
      status: 202,
      errors: ["run_not_found", "conflict"],
      async handle(input) {
        const { run_id } = await find(input, "run.signal");
        const key = readIdempotencyKey(input);
        await engine.signal(run_id, {
          ...input.body,
          ...(key === undefined ? {} : { idempotency_key: key }),
        });
        return { status: "accepted" };
      },
    }),
  ];
}
