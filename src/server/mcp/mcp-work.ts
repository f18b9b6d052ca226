import type { AuthInfo, McpServer, ServerContext, ServerNotifier } from "@modelcontextprotocol/server";
import { operationOf } from "../../app/service/stored-input.ts";
import type { ServedTool } from "../../mcp/server/read-tool.ts";
import type { Principal } from "../../protocol/access.ts";
import type { ApprovalRequest } from "../../protocol/approval.ts";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { RunRecord } from "../../protocol/run.ts";
import type { ServiceContext } from "../service-context.ts";
import { followRun } from "../streams/run-stream.ts";

/** How a server answers MCP calls of agents and workflows. */
export interface McpSettings {
  /** Whether a client that can show a form is asked about waiting calls; otherwise people decide in the inbox. */
  readonly approvals: "elicit" | "inbox";
  /** How long a call waits for the end of the work, in ms. Afterwards, its answer says how to wait on. */
  readonly waitMs: number;
  /** Adds prompts and resources of a program to the server of each request, and returns its tools. */
  readonly extend?: (server: McpServer, notify: () => ServerNotifier) => readonly ServedTool[];
}

export interface McpContext extends ServiceContext {
  readonly settings: McpSettings;
}

/** A dispatch or a run that a principal has started: the task of a client. */
export interface McpWork {
  /** `dispatch_…` or `run_…`. */
  readonly id: string;
  /** The tool that started it, such as `agent:reviewer`. */
  readonly source: string;
  record(): Promise<WorkRecord | undefined>;
  events(signal: AbortSignal): Promise<AsyncIterable<KitEvent>>;
  ended(signal: AbortSignal): Promise<WorkRecord | undefined>;
  cancel(): Promise<boolean>;
  /** The calls of the work that wait for a decision, and that the principal may decide about. */
  waiting(): Promise<readonly ApprovalRequest[]>;
}

export type WorkRecord = DispatchRecord | RunRecord;

/** The principal that sent a request. */
export function senderOf({ http }: Pick<ServerContext, "http">): Principal | undefined {
  return principalOf(http?.authInfo);
}

/** The principal in what the server has passed to the SDK about the sender. */
export function principalOf(authInfo: AuthInfo | undefined): Principal | undefined {
  return authInfo?.extra?.principal as Principal | undefined;
}

/**
 * Returns the work with an id, if the principal has started it and is permitted to. The id can come from a stranger: work of another
 * principal is unknown, as is work that an agent, a schedule or a webhook has started.
 */
export async function findWork(
  context: McpContext,
  principal: Principal | undefined,
  { id, action = "read" }: { readonly id: string; readonly action?: "read" | "cancel" },
): Promise<McpWork | undefined> {
  const { engine } = context.service;
  const isDispatch = id.startsWith("dispatch_");
  const record = isDispatch ? await engine.getDispatch(id) : await engine.getRun(id);
  if (record === undefined) return undefined;
  const owner = record.cause?.type === "sender" ? record.cause.principal : undefined;
  if (owner !== principal?.id || (record.cause !== undefined && owner === undefined)) return undefined;
  const request =
    "dispatch_id" in record
      ? { action: `dispatch.${action}` as const, agent: record.agent, instance: record.instance_id }
      : { action: `run.${action}` as const, workflow: record.workflow, run_id: record.run_id };
  const [permitted] = await context.authorization.permitted([request], (one) => ({ principal, ...one }));
  if (permitted === undefined) return undefined;
  return "dispatch_id" in record
    ? dispatchWork(context, principal, record)
    : runWork(context, principal, record);
}

/** The work of a dispatch that the principal has started. */
export function dispatchWork(
  context: McpContext,
  principal: Principal | undefined,
  { dispatch_id: id, agent, instance_id }: Pick<DispatchRecord, "dispatch_id" | "agent" | "instance_id">,
): McpWork {
  const { service } = context;
  const { engine } = service;
  return {
    id,
    source: `agent:${agent}`,
    record: () => engine.getDispatch(id),
    events: (signal) =>
      service.followOperation({ agent, instance_id, operation_id: operationOf(id) }, { signal }),
    ended: (signal) => engine.awaitDispatch(id, { signal }),
    cancel: () => engine.cancelDispatch(id),
    waiting: () => waitingCalls(context, principal, { filter: { agent, instance_id }, id }),
  };
}

/** The work of a run that the principal has started. */
export function runWork(
  context: McpContext,
  principal: Principal | undefined,
  { run_id: id, workflow }: Pick<RunRecord, "run_id" | "workflow">,
): McpWork {
  const { engine } = context.service;
  return {
    id,
    source: `workflow:${workflow}`,
    record: () => engine.getRun(id),
    events: async (signal) => followRun(engine, id, { signal }),
    ended: (signal) => engine.awaitRun(id, { signal }),
    cancel: () => engine.cancelRun(id),
    waiting: () => waitingCalls(context, principal, { filter: { instance_id: id }, id }),
  };
}

async function waitingCalls(
  { service, authorization }: McpContext,
  principal: Principal | undefined,
  { filter, id }: { readonly filter: { agent?: string; instance_id: string }; readonly id: string },
): Promise<readonly ApprovalRequest[]> {
  const calls = await service.approvals.list(filter);
  return await authorization.permitted(
    calls.filter(
      (call) =>
        (call.dispatch_id === id || call.run_id === id) &&
        // The caller answers it with a result.
        call.kind !== "caller",
    ),
    ({ agent, instance_id: instance }) => ({ principal, action: "agent.approve", agent, instance }),
  );
}
