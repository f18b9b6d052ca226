import { toSentDispatch } from "../../app/service/session-input.ts";
import { KitError } from "../../base/kit-error.ts";
import type { ServiceAction } from "../../protocol/access.ts";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import {
  cancelledSchema,
  dispatchPageSchema,
  dispatchQuerySchema,
  dispatchRecordSchema,
} from "../../protocol/dispatch.ts";
import { emptyBodySchema } from "../../protocol/fields.ts";
import { defineRoute, type Route, type RouteRequest } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";

const tag = "dispatches";
const parameters = { dispatch_id: "As the receipt names it." };

/** `/dispatches`: what became of inputs, and dead letters tried again. */
export function dispatchRoutes({ service, authorization }: ServiceContext): readonly Route[] {
  const { engine } = service;
  /** The dispatch of a request whose sender may do this with it. */
  const find = async (
    { segment, principal }: RouteRequest,
    action: ServiceAction,
  ): Promise<DispatchRecord> => {
    const record = await engine.getDispatch(segment("dispatch_id"));
    if (record === undefined)
      throw new KitError({ code: "not_found", message: "There is no such dispatch." });
    await authorization.check({ principal, action, agent: record.agent, instance: record.instance_id });
    return record;
  };
  return [
    defineRoute({
      operation: "listDispatches",
      method: "GET",
      path: "/dispatches",
      summary: "Dispatches, newest first",
      description: "`status=failed` lists the dead letters: inputs whose attempts are used up.",
      tag,
      query: dispatchQuerySchema,
      reply: dispatchPageSchema,
      async handle({ query, principal }) {
        const { agent, instance_id } = query;
        await authorization.check({
          principal,
          action: "dispatch.list",
          ...(agent === undefined ? {} : { agent }),
          ...(instance_id === undefined ? {} : { instance: instance_id }),
        });
        const { items, next_cursor } = await engine.listDispatches(query);
        const dispatches = await authorization.permitted(items, (record) => ({
          principal,
          action: "dispatch.read",
          agent: record.agent,
          instance: record.instance_id,
        }));
        return { dispatches: dispatches.map(toSentDispatch), next_cursor };
      },
    }),
    defineRoute({
      operation: "getDispatch",
      method: "GET",
      path: "/dispatches/{dispatch_id}",
      summary: "One dispatch",
      tag,
      parameters,
      reply: dispatchRecordSchema,
      errors: ["not_found"],
      handle: async (input) => toSentDispatch(await find(input, "dispatch.read")),
    }),
    defineRoute({
      operation: "retryDispatch",
      method: "POST",
      path: "/dispatches/{dispatch_id}/retry",
      summary: "Give a dead letter its attempts again",
      description: "It goes to the end of its session's line.",
      tag,
      parameters,
      body: emptyBodySchema,
      reply: dispatchRecordSchema,
      errors: ["not_found", "conflict"],
      handle: async (input) =>
        toSentDispatch(await engine.redrive((await find(input, "dispatch.retry")).dispatch_id)),
    }),
    defineRoute({
      operation: "cancelDispatch",
      method: "POST",
      path: "/dispatches/{dispatch_id}/cancel",
      summary: "Take back an input that waits, or abort the work on it",
      tag,
      parameters,
      body: emptyBodySchema,
      reply: cancelledSchema,
      errors: ["not_found"],
      handle: async (input) => ({
        cancelled: await engine.cancelDispatch((await find(input, "dispatch.cancel")).dispatch_id),
      }),
    }),
  ];
}
