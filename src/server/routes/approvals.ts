import { checkEdited, isDetailed, notWaiting } from "../../agents/approvals/approvals.ts";
import { createJsonValidator } from "../../app/runtime/validate-json.ts";
import type { InstanceTarget } from "../../app/service/service.ts";
import { canonical } from "../../base/json-text.ts";
import { KitError } from "../../base/kit-error.ts";
import type { ApprovalDecision, ApprovalRequest } from "../../protocol/approval.ts";
import { approvalRoutes } from "../../protocol/routes/agent-routes.ts";
import { bindRoutes, type Handlers, type Route, type RouteRequest } from "../route.ts";
import { checkAgent, instanceOf, type ServiceContext } from "../service-context.ts";

const defaultPageSize = 50;

/** Encodes the position of a call in the list, which stays valid after the call is decided. */
function placeOf({ requested_at, approval_id }: ApprovalRequest): string {
  return `${requested_at} ${approval_id}`;
}

function badCursor(): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The cursor does not belong to this list.",
    meta: { issues: [{ path: "cursor", message: "must be the next_cursor of an earlier page" }] },
  });
}

async function findCall(
  approvals: ServiceContext["service"]["approvals"],
  { approval_id, ...target }: InstanceTarget & { readonly approval_id: string },
): Promise<ApprovalRequest | undefined> {
  return (await approvals.list(target)).find((one) => one.approval_id === approval_id);
}

/** Returns a waiting call. Throws `not_found` for a call that does not wait. */
async function waitingCall(
  approvals: ServiceContext["service"]["approvals"],
  call: InstanceTarget & { readonly approval_id: string },
): Promise<ApprovalRequest> {
  const request = await findCall(approvals, call);
  if (request === undefined) throw notWaiting();
  return request;
}

/**
 * The action that a decision needs, on every way that a decision comes. Who may prompt an agent answers the calls of the prompts' own
 * tools; an approver decides about others.
 */
export function actionOn(approvalId: string): "agent.prompt" | "agent.approve" {
  return approvalId.startsWith("caller_") ? "agent.prompt" : "agent.approve";
}

/**
 * Decides about a waiting call. It checks the arguments of an approver with the tool's schema; the agent checks them again. Throws
 * `invalid_request` for invalid arguments, and `not_found` for a call that does not wait.
 */
export async function decideCall(
  { approvals }: ServiceContext["service"],
  { approval_id, ...target }: InstanceTarget & { readonly approval_id: string },
  decision: ApprovalDecision,
): Promise<void> {
  await checkDecision({ approvals }, { approval_id, ...target }, decision);
  await approvals.decide(approval_id, decision, target);
}

/** Checks what a decision carries, for several that are made together. Throws `invalid_request`. */
export async function checkDecision(
  { approvals }: Pick<ServiceContext["service"], "approvals">,
  { approval_id, ...target }: InstanceTarget & { readonly approval_id: string },
  decision: ApprovalDecision,
): Promise<void> {
  if (!isDetailed(approval_id, decision)) return;
  const request = await findCall(approvals, { approval_id, ...target });
  // `decide` tells why it does not wait.
  if (request === undefined) return;
  checkEdited(request, decision);
  const isAnswer = request.kind === "question" && decision.approved;
  const [path, schema, message] = isAnswer
    ? ([
        "result",
        request.schema,
        `The answer is not what ${request.tool} asks for: see \`schema\` of the question, which still waits.`,
      ] as const)
    : (["args", request.input_schema, `The arguments are not what ${request.tool} takes.`] as const);
  const value = decision[path];
  if (value === undefined) return;
  const issues = await createJsonValidator({ isLenient: true })(schema ?? {}, value);
  if (issues.length === 0) return;
  throw new KitError({
    code: "invalid_request",
    message,
    meta: { issues: issues.map((issue) => ({ path, message: issue })) },
  });
}

function notOffered({ no_allow_rule }: ApprovalRequest): KitError {
  return new KitError({
    code: "invalid_request",
    message: no_allow_rule ?? "The rule is not one of the offered rules of this call.",
    hint: "GET the rules of the call, and send one of them unchanged.",
    meta: { issues: [{ path: "rule", message: "must be one of the rules that are offered" }] },
  });
}

/** Tool calls that wait for an approval decision. */
export function bindApprovalRoutes(context: ServiceContext): readonly Route[] {
  const { service, authorization } = context;
  /**
   * Requests cannot prompt an agent that a workflow created, or one that is not reachable over HTTP. But a
   * permitted approver must be able to decide about its waiting calls.
   */
  const guard = async (request: RouteRequest): Promise<void> => {
    const target = instanceOf(request);
    const { agent, instance_id: instance } = target;
    const { principal, action: least } = request;
    if (least === undefined) return;
    const action = least === "agent.approve" ? actionOn(request.segment("approval_id")) : least;
    await authorization.check({ principal, action, agent, instance });
    if ((await service.approvals.list(target)).length > 0) return;
    if ((await service.engine.getRun(instance)) === undefined) checkAgent(context, agent);
  };
  const handlers: Handlers<typeof approvalRoutes> = {
    async "GET /approvals"({ query, principal, itemAction: action }) {
      const { limit = defaultPageSize, cursor, ...filter } = query;
      const waiting = (await service.approvals.list(filter))
        .map((approval) => ({ approval, place: placeOf(approval) }))
        .sort((one, other) => (one.place < other.place ? -1 : 1));
      if (cursor !== undefined && !/^\d{4}-\S+ [a-z]+_\S+$/.test(cursor)) throw badCursor();
      const { items, next_cursor } = await authorization.page(
        async (next) => {
          const after = next.cursor ?? cursor ?? "";
          const following = waiting.filter(({ place }) => place > after);
          const page = following.slice(0, next.limit ?? limit);
          return {
            items: page,
            next_cursor: page.length < following.length ? page.at(-1)?.place : undefined,
          };
        },
        ({ approval: { agent, instance_id: instance } }) => ({ principal, action, agent, instance }),
      );
      return { approvals: items.map(({ approval }) => approval), next_cursor };
    },
    "GET /agents/{name}/{id}/approvals": async (input) => ({
      approvals: await service.approvals.list({ ...instanceOf(input), ...input.query }),
    }),
    async "POST /agents/{name}/{id}/approvals/{approval_id}"(input) {
      const decision = { ...input.body, by: input.principal?.id };
      const approval_id = input.segment("approval_id");
      await decideCall(service, { ...instanceOf(input), approval_id }, decision);
      return { approved: decision.approved };
    },
    async "GET /agents/{name}/{id}/approvals/{approval_id}/rules"(input) {
      const target = { ...instanceOf(input), approval_id: input.segment("approval_id") };
      const { allow_rules = [], no_allow_rule } = await waitingCall(service.approvals, target);
      const described = (await service.allowRules()).describe(allow_rules);
      return no_allow_rule === undefined ? described : { ...described, problem: no_allow_rule };
    },
    async "POST /agents/{name}/{id}/approvals/{approval_id}/rules"(input) {
      const { principal, itemAction: action, body } = input;
      const { agent, instance_id: instance } = instanceOf(input);
      const approval_id = input.segment("approval_id");
      await authorization.check({ principal, action, agent, instance });
      const request = await waitingCall(service.approvals, { agent, instance_id: instance, approval_id });
      const rule = request.allow_rules?.find((one) => canonical(one) === canonical(body.rule));
      if (rule === undefined) throw notOffered(request);
      const written = await (await service.allowRules()).write(rule);
      return { rule, ...written, applies_to: service.nodes === undefined ? "all_nodes" : "this_node" };
    },
  };
  return bindRoutes(approvalRoutes, handlers, guard);
}
