import {
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { type Answers, decideAnswered } from "./ask.ts";
import { findWork, type McpContext, type McpWork, senderOf } from "./mcp-work.ts";
import { capabilitiesOf, tasksExtension, toTask } from "./work-result.ts";

const params = z.object({ taskId: z.string().max(200) }).loose();
const schemas = { params, result: z.object({}).loose() };

/** Serves the dispatches and runs of a principal as tasks, to clients that declare the extension. */
export function serveTasks(server: Server, context: McpContext): void {
  const find = async (id: string, call: ServerContext, action?: "cancel"): Promise<McpWork> => {
    if (capabilitiesOf(call).extensions?.[tasksExtension] === undefined)
      throw new MissingRequiredClientCapabilityError({
        requiredCapabilities: { extensions: { [tasksExtension]: {} } },
      });
    const work = await findWork(context, senderOf(call), { id, ...(action && { action }) });
    if (work === undefined) throw noSuchWork();
    return work;
  };
  server.setRequestHandler("tasks/get", schemas, async ({ taskId }, call) => {
    const work = await find(taskId, call);
    const record = await work.record();
    if (record === undefined) throw noSuchWork();
    return await toTask(work, record);
  });
  server.setRequestHandler("tasks/update", schemas, async ({ taskId }, call) => {
    const work = await find(taskId, call);
    // The SDK takes the answers out of the params of every method.
    const answers = call.mcpReq.inputResponses as Answers;
    await decideAnswered(context, work, { principal: senderOf(call), answers });
    return {};
  });
  server.setRequestHandler("tasks/cancel", schemas, async ({ taskId }, call) => {
    await (await find(taskId, call, "cancel")).cancel();
    return {};
  });
}

/** The error for an id that names no work of the sender. */
export function noSuchWork(): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, "There is no such task.");
}
