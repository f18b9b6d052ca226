import { KitError } from "../../base/kit-error.ts";
import type { ServiceAction } from "../../protocol/access.ts";
import type { ApprovalRequest } from "../../protocol/approval.ts";
import {
  approvalBodySchema,
  approvalListSchema,
  approvalPageSchema,
  approvalQuerySchema,
  decidedSchema,
} from "../../protocol/approval.ts";
import { oneSessionQuerySchema } from "../../protocol/prompt.ts";
import { instanceOf, instanceParameters } from "../instance-request.ts";
import { checkAgent } from "../reachable-agent.ts";
import { defineRoute, type Route, type RouteRequest } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";

const tag = "agents";

const defaultPageSize = 50;

/** Where it stands among those that wait: one that was decided meanwhile still tells where the next page begins. */
function placeOf({ requested_at, approval_id }: ApprovalRequest): string {
  return `${requested_at} ${approval_id}`;
}

function badCursor(): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The cursor is none of this list.",
    meta: { issues: [{ path: "cursor", message: "must be the next_cursor of an earlier page" }] },
  });
}

/** The tool calls of an instance that wait for somebody's word. */
export function approvalRoutes(context: ServiceContext): readonly Route[] {
  const { service, authorization } = context;
  /**
   * An agent that a workflow brings along has no file, and one may be kept off HTTP: nobody prompts them from
   * here. But what waits for a word has to be within reach of those who may give it.
   */
  const guardFor =
    (action: ServiceAction) =>
    async (request: RouteRequest): Promise<void> => {
      const target = instanceOf(request);
      const { agent, instance_id: instance } = target;
      await authorization.check({ principal: request.principal, action, agent, instance });
      if ((await service.approvals.list(target)).length > 0) return;
      if ((await service.engine.getRun(instance)) === undefined) checkAgent(context, agent);
    };
  return [
    defineRoute({
      operation: "listAllApprovals",
      method: "GET",
      path: "/approvals",
      summary: "The tool calls of all agents that wait for approval, oldest first",
      tag,
      query: approvalQuerySchema,
      reply: approvalPageSchema,
      async handle({ query: { limit = defaultPageSize, cursor, ...filter }, principal }) {
        const waiting = (await service.approvals.list(filter))
          .map((approval) => ({ approval, place: placeOf(approval) }))
          .sort((one, other) => (one.place < other.place ? -1 : 1));
        if (cursor !== undefined && !/^\d{4}-\S+ approval_\S+$/.test(cursor)) throw badCursor();
        const from = cursor === undefined ? 0 : waiting.findIndex(({ place }) => place > cursor);
        const page = from < 0 ? [] : waiting.slice(from, from + limit);
        const last = from + limit < waiting.length ? page.at(-1) : undefined;
        const listed = page.map(({ approval }) => approval);
        const approvals = await authorization.permitted(listed, ({ agent, instance_id: instance }) => ({
          principal,
          action: "agent.read",
          agent,
          instance,
        }));
        return { approvals, ...(last === undefined ? {} : { next_cursor: last.place }) };
      },
    }),
    defineRoute({
      operation: "listApprovals",
      method: "GET",
      path: "/agents/{name}/{id}/approvals",
      summary: "Tool calls that wait for approval, oldest first",
      tag,
      parameters: instanceParameters,
      query: oneSessionQuerySchema,
      reply: approvalListSchema,
      errors: ["agent_not_found", "agent_not_webhook"],
      guard: guardFor("agent.read"),
      handle: async (input) => ({
        approvals: await service.approvals.list({ ...instanceOf(input), ...input.query }),
      }),
    }),
    defineRoute({
      operation: "decideApproval",
      method: "POST",
      path: "/agents/{name}/{id}/approvals/{approval_id}",
      summary: "Approve or deny a tool call",
      tag,
      parameters: { ...instanceParameters, approval_id: "As the `approval_request` event names it." },
      body: approvalBodySchema,
      reply: decidedSchema,
      errors: ["agent_not_found", "agent_not_webhook", "not_found"],
      guard: guardFor("agent.approve"),
      async handle(input) {
        const by = input.principal === undefined ? {} : { by: input.principal.id };
        const decision = { ...input.body, ...by };
        await service.approvals.decide(input.segment("approval_id"), decision, instanceOf(input));
        return { approved: decision.approved };
      },
    }),
  ];
}
