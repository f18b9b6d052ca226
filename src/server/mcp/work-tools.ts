import { hash } from "node:crypto";
import {
  type CallToolResult,
  type InputRequiredResult,
  inputRequired,
  ProtocolError,
  type ServerContext,
  type Tool,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { jsonSchemaOf } from "../../agents/output/typed-output.ts";
import { keyOfSender } from "../../app/service/stored-input.ts";
import type { LoadedAgent, LoadedWorkflow } from "../../app/sources/discover-sources.ts";
import { createUlid } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import {
  reporterOf,
  type ServedTool,
  toErrorResult,
  toInputSchema,
  toolErrorText,
} from "../../mcp/server/read-tool.ts";
import type { AuthorizeRequest, Principal } from "../../protocol/access.ts";
import type { ErrorIssue } from "../../protocol/errors.ts";
import { nameField } from "../../protocol/fields.ts";
import { checkInput } from "../request/read-request.ts";
import { type Answers, decideAnswered, toQuestions } from "./ask.ts";
import {
  dispatchWork,
  findWork,
  type McpContext,
  type McpWork,
  runWork,
  senderOf,
  type WorkRecord,
} from "./mcp-work.ts";
import { noSuchWork } from "./tasks.ts";
import { capabilitiesOf, tasksExtension, toResult, toTask } from "./work-result.ts";

type Arguments = Readonly<Record<string, unknown>>;
type Start = (args: Arguments, principal: Principal | undefined) => Promise<McpWork>;

interface WorkTool extends ServedTool {
  /** The action that a sender must be permitted to see the tool. */
  readonly ask: Omit<AuthorizeRequest, "principal">;
}

/** Returns the tools that a sender may see: agents that are reachable over HTTP, and workflows. They are converted once for each reload. */
export function createWorkTools(
  context: McpContext,
  onError: (error: unknown) => void,
): (principal: Principal | undefined) => Promise<readonly ServedTool[]> {
  const { app } = context.service;
  let from: readonly unknown[] = [];
  let tools: readonly WorkTool[] = [];
  return async (principal) => {
    const now = [app.agents(), app.workflows()];
    if (now.some((list, at) => list !== from[at])) {
      const served = app.agents().filter((agent) => context.reach.serves(agent));
      const agents = withToolNames("agent", served);
      const workflows = withToolNames("workflow", app.workflows());
      tools = [
        ...agents.map((agent) => agentTool(context, agent, onError)),
        ...workflows.map((workflow) => workflowTool(context, workflow, onError)),
      ];
      if (tools.length > 0) tools = [...tools, waitTool(context, onError)];
      from = now;
    }
    return await context.authorization.permitted(tools, ({ ask }) => ({ principal, ...ask }));
  };
}

const keyField = z
  .string()
  .regex(/^[\x20-\x7e]{1,100}$/, "must have 1 to 100 printable ASCII characters")
  .optional()
  .meta({
    description:
      "Identifies this piece of work: a call with the key of an earlier one starts nothing, and waits for that work. With it, a call that broke off can be repeated.",
  });

const agentInput = z.strictObject({
  message: z.string().min(1).meta({ description: "What the agent is asked." }),
  instance: nameField
    .optional()
    .meta({ description: "From an earlier answer, to go on with its conversation; default: a new one." }),
  session: nameField.optional().meta({ description: "A conversation of the instance; default: default." }),
  key: keyField,
});
const agentSchema = toInputSchema(agentInput);

function agentTool(
  context: McpContext,
  { name, definition, toolName }: LoadedAgent & Called,
  onError: (error: unknown) => void,
): WorkTool {
  const said = "profile" in definition ? definition.profile.description : undefined;
  const description = `${said === undefined ? "" : `${said} `}Gives the agent ${name} a message and returns its answer.`;
  const start: Start = async (args, principal) => {
    const input = checkInput("body", args, agentInput);
    const { message, key = createUlid(), session = "default" } = input;
    const fallback = `mcp-${hash("sha256", JSON.stringify([principal?.id, name, key])).slice(0, 24)}`;
    const { instance: instance_id = fallback } = input;
    // The tool starts a dispatch, and returns what it has answered.
    for (const action of ["agent.dispatch", "dispatch.read"] as const)
      await context.authorization.check({ principal, action, agent: name, instance: instance_id });
    const target = { agent: name, instance_id, session };
    const { dispatch_id } = await context.service.dispatch(target, message, {
      idempotencyKey: keyOfSender(principal, `mcp-${key}`),
      principal: principal?.id,
    });
    return dispatchWork(context, principal, { dispatch_id, agent: name, instance_id });
  };
  return {
    ask: { action: "agent.list", agent: name },
    definition: {
      ...{ name: toolName, title: name, description, inputSchema: agentSchema },
      annotations: { title: name, readOnlyHint: false, openWorldHint: true },
    },
    call: createCall(context, { source: `agent:${name}`, start, onError }),
  };
}

function workflowTool(
  context: McpContext,
  { name, payload, toolName }: LoadedWorkflow & Called,
  onError: (error: unknown) => void,
): WorkTool {
  const schema = payload === undefined ? undefined : jsonSchemaOf(payload);
  const start: Start = async (args, principal) => {
    await context.authorization.check({ principal, action: "workflow.run", workflow: name });
    const { run_id } = await context.service.startRun(name, args, { principal: principal?.id });
    return runWork(context, principal, { run_id, workflow: name });
  };
  return {
    ask: { action: "workflow.list", workflow: name },
    definition: {
      ...{ name: toolName, title: name, description: `Runs the workflow ${name}.` },
      inputSchema: (schema?.type === "object" ? schema : { type: "object" }) as Tool["inputSchema"],
      annotations: { title: name, readOnlyHint: false, openWorldHint: true },
    },
    call: createCall(context, { source: `workflow:${name}`, start, onError }),
  };
}

const waitInput = z.strictObject({
  id: z.string().max(200).meta({ description: "The `dispatch_…` or `run_…` of an earlier answer." }),
});

/** The tool by which clients without tasks wait on. */
function waitTool(context: McpContext, onError: (error: unknown) => void): WorkTool {
  const start: Start = async (args, principal) => {
    const work = await findWork(context, principal, checkInput("body", args, waitInput));
    if (work !== undefined) return work;
    throw new KitError({ code: "not_found", message: "You have started no work with this id." });
  };
  return {
    ask: { action: "project.read" },
    definition: {
      ...{ name: waitToolName, title: "Wait for work", inputSchema: toInputSchema(waitInput) },
      description:
        "Waits for the work of an agent or a workflow that an earlier call has started, and returns its result.",
      annotations: { title: "Wait for work", readOnlyHint: true, idempotentHint: true, openWorldHint: false },
    },
    call: createCall(context, { start, onError }),
  };
}

interface Call {
  /** The agent or the workflow whose work the tool starts; undefined for work of any. */
  readonly source?: string;
  readonly start: Start;
  readonly onError: (error: unknown) => void;
}

/** Starts work, or goes on with what an earlier request of the same call has started, and waits for it. */
function createCall(context: McpContext, { source, start, onError }: Call): ServedTool["call"] {
  return async (args, call) => {
    const principal = senderOf(call);
    try {
      // The client returns the state, and can change it: it is an id, with which it can reach its own work only.
      const state: unknown = call.mcpReq.requestState();
      const work =
        state === undefined
          ? await start(args, principal)
          : await findWork(context, principal, { id: String(state) });
      if (work === undefined || (source !== undefined && work.source !== source)) throw noSuchWork();
      return await followWork(context, work, call);
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      return toErrorResult(
        `${toolErrorText(error, call.mcpReq.signal.aborted ? undefined : onError)}${issuesOf(error)}`,
      );
    }
  };
}

/** The faults of the arguments as text. */
function issuesOf(error: unknown): string {
  const issues = error instanceof KitError ? error.meta?.issues : undefined;
  if (!Array.isArray(issues)) return "";
  return issues
    .map(({ path, message }: ErrorIssue) => ` ${path.replace(/^body\.?/, "") || "arguments"}: ${message}.`)
    .join("");
}

interface Called {
  readonly toolName: string;
}

/** Adds names of tools, which have the signs that all clients accept, and at most 64: a hash keeps apart those that would be the same. */
function withToolNames<Item extends { readonly name: string }>(
  kind: "agent" | "workflow",
  items: readonly Item[],
): readonly (Item & Called)[] {
  const nameOf = ({ name }: Item): string => `${kind}_${name.replace(/[^\w-]/g, "_")}`;
  const uses = Map.groupBy(items, nameOf);
  return items.map((item) => {
    const name = nameOf(item);
    const isOwn = name === `${kind}_${item.name}` || uses.get(name)?.length === 1;
    const suffix = hash("sha256", item.name).slice(0, 8);
    return { ...item, toolName: isOwn && name.length <= 64 ? name : `${name.slice(0, 55)}_${suffix}` };
  });
}

/** The tool by which clients without tasks wait on. */
const waitToolName = "work_result";

/** A client that can follow a task gets one for work that takes longer than this. */
const taskAfterMs = 1_000;

/**
 * Waits for the end of work and returns its result. A client that can show a form is asked about waiting calls, and one that can follow
 * tasks gets one; for the others people decide in the inbox, and the answer says how to wait on. A client that leaves ends no work.
 */
async function followWork(
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
