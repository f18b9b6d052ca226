import {
  type CallToolResult,
  type InputRequiredResult,
  inputRequired,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { reporterOf } from "../../mcp/server/read-tool.ts";
import { type Answers, decideAnswered, toQuestions } from "./ask.ts";
import { type McpContext, type McpWork, senderOf, type WorkRecord } from "./mcp-work.ts";
import { capabilitiesOf, tasksExtension, toResult, toTask } from "./work-result.ts";

/** The tool by which clients without tasks wait on. */
export const waitToolName = "work_result";

/** A client that can follow a task gets one for work that takes longer than this. */
const taskAfterMs = 1_000;

/**
 * Waits for the end of work and returns its result. A client that can show a form is asked about waiting calls, and one that can follow
 * tasks gets one; for the others people decide in the inbox, and the answer says how to wait on. A client that leaves ends no work.
 */
export async function followWork(
  context: McpContext,
  work: McpWork,
  call: ServerContext,
): Promise<CallToolResult | InputRequiredResult> {
  const { mcpReq } = call;
  const { settings } = context;
  const { elicitation, extensions } = capabilitiesOf(call);
  const canTask = extensions?.[tasksExtension] !== undefined;
  const canAsk = settings.approvals === "elicit" && elicitation !== undefined;
  let isClosed = false;
  if (mcpReq.inputResponses !== undefined && canAsk) {
    const answers = mcpReq.inputResponses as Answers;
    isClosed = await decideAnswered(context, work, { principal: senderOf(call), answers });
  }
  const limit = AbortSignal.timeout(canTask ? taskAfterMs : settings.waitMs);
  const signal = AbortSignal.any([mcpReq.signal, limit]);
  const report = reporterOf(call);
  let steps = 0;
  let record: WorkRecord | undefined;
  try {
    for await (const event of await work.events(signal)) {
      if (event.type === "tool_start") report({ progress: ++steps, message: context.masked(event.tool) });
      if (event.type !== "approval_request") continue;
      const waiting = await work.waiting();
      // The person who closed the form decides later, in the inbox.
      if (waiting.length > 0 && isClosed) break;
      const inputRequests = canAsk ? toQuestions(waiting) : {};
      if (Object.keys(inputRequests).length > 0)
        return inputRequired({ inputRequests, requestState: work.id });
      report({
        progress: ++steps,
        message: `${context.masked(event.tool)} waits for a decision in kit's inbox`,
      });
    }
    record = isClosed && (await work.waiting()).length > 0 ? undefined : await work.ended(signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  mcpReq.signal.throwIfAborted();
  if (record !== undefined && record.ended_at !== undefined) return toResult(record);
  const known = canTask ? await work.record() : undefined;
  // The SDK wants `content` in every result of a tool.
  if (known !== undefined) return { ...(await toTask(work, known)), resultType: "task", content: [] };
  const waiting = await work.waiting();
  const text =
    waiting.length === 0
      ? `${work.id} is still at work.`
      : `${work.id} waits until a person decides about ${waiting.map(({ tool }) => tool).join(", ")}: in kit's console, or with kit approvals.`;
  return {
    content: [{ type: "text", text: `${text} Call ${waitToolName} with this id to wait on.` }],
    structuredContent: { id: work.id, status: "working" },
  };
}
