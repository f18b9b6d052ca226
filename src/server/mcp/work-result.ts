import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { toErrorResult } from "../../mcp/server/read-tool.ts";
import { toQuestions } from "./ask.ts";
import type { McpWork, WorkRecord } from "./mcp-work.ts";

/** The extension of revision 2026-07-28 by which clients follow long work. */
export const tasksExtension = "io.modelcontextprotocol/tasks";

type Capabilities = ClientCapabilities & { readonly extensions?: Readonly<Record<string, unknown>> };

/** The capabilities that a client of revision 2026-07-28 sends with each request; earlier clients have none without a session. */
export function capabilitiesOf({ mcpReq }: ServerContext): Capabilities {
  const envelope: Readonly<Record<string, unknown>> = mcpReq.envelope ?? {};
  return (envelope[CLIENT_CAPABILITIES_META_KEY] as Capabilities | undefined) ?? {};
}

/** The result of a tool whose work has ended. */
export function toResult(record: WorkRecord): CallToolResult {
  if (record.status !== "completed")
    return toErrorResult(record.error?.message ?? `The work was ${record.status}.`);
  if ("run_id" in record) {
    const { run_id, result = null } = record;
    const text = JSON.stringify(result);
    return { content: [{ type: "text", text }], structuredContent: { result, run_id } };
  }
  const { dispatch_id, instance_id: instance, session } = record;
  const { text, result } = record.result as { readonly text: string; readonly result?: unknown };
  const typed = result === undefined ? {} : { result };
  return {
    content: [{ type: "text", text }],
    structuredContent: { text, ...typed, instance, session, dispatch_id },
  };
}

/** How often a client should ask for a task, in ms. */
const pollIntervalMs = 1_000;

/** A dispatch or a run as a task, with the questions that it waits for. */
export async function toTask(work: McpWork, record: WorkRecord): Promise<Record<string, unknown>> {
  const { status, error, accepted_at, started_at, ended_at } = record;
  const task = {
    taskId: work.id,
    createdAt: accepted_at,
    lastUpdatedAt: ended_at ?? started_at ?? accepted_at,
    ttlMs: null,
    pollIntervalMs,
  };
  if (status === "cancelled") return { ...task, status };
  // A failed task is one whose server has failed; what an agent could not do is a result.
  if (status === "failed" && error?.type === "store_unavailable")
    return { ...task, status, error: { code: -32_603, message: error.message } };
  if (ended_at !== undefined) return { ...task, status: "completed", result: toResult(record) };
  const inputRequests = toQuestions(await work.waiting());
  return Object.keys(inputRequests).length === 0
    ? { ...task, status: "working", statusMessage: status }
    : { ...task, status: "input_required", inputRequests };
}
