import {
  allowBodySchema,
  allowChoicesSchema,
  allowedSchema,
  approvalBodySchema,
  approvalListSchema,
  approvalPageSchema,
  approvalQuerySchema,
  decidedSchema,
} from "../approval.ts";
import { eventSchema } from "../event.ts";
import { guidelineUsageQuerySchema, guidelineUsageSchema } from "../guideline-usage.ts";
import {
  abortBodySchema,
  abortedSchema,
  agentListSchema,
  deletedSchema,
  dispatchAcceptedSchema,
  dispatchBodySchema,
  historyQuerySchema,
  historySchema,
  instanceEventsQuerySchema,
  oneSessionQuerySchema,
  promptBodySchema,
  promptReplySchema,
  promptRequestSchema,
} from "../prompt.ts";
import {
  pruneBodySchema,
  prunedPageSchema,
  sessionPageSchema,
  sessionsQuerySchema,
} from "../session-page.ts";
import {
  forkBodySchema,
  forkedSchema,
  operationEventsQuerySchema,
  operationEventsSchema,
  operationPageSchema,
  operationsQuerySchema,
  turnQuerySchema,
  turnSchema,
} from "../trace.ts";
import { waitingPageSchema, waitingQuerySchema } from "../waiting.ts";
import { defineRoutes } from "./route.ts";

const parameters = { name: "The agent's name.", id: "The instance's id, chosen by the client." } as const;
const turnParameters = { ...parameters, turn_id: "`turn_id` of the turn's events." } as const;
const instance = { tag: "agents", parameters } as const;

const promptErrors = [
  "agent_not_found",
  "agent_not_webhook",
  "conflict",
  "aborted",
  "budget_exceeded",
  "model_error",
  "context_overflow",
  "model_timeout",
  "unavailable",
  "store_unavailable",
] as const;

/** Prompts, dispatches, events and histories of agent instances. */
export const agentRoutes = defineRoutes({
  "GET /agents": {
    tag: "agents",
    operation: "listAgents",
    summary: "The agents of the project",
    reply: agentListSchema,
    itemAction: "agent.list",
  },
  "POST /agents/{name}/{id}": {
    ...instance,
    operation: "promptAgent",
    summary: "Prompt an agent and wait for its answer",
    description:
      "With `Accept: text/event-stream` the reply streams the events, then one `result` or `error`. A client that disconnects aborts the prompt, unless it sent an Idempotency-Key.",
    headers: ["Idempotency-Key"],
    body: promptBodySchema,
    reply: promptReplySchema,
    stream: "asked",
    errors: promptErrors,
    action: "agent.prompt",
    itemAction: "agent.omit_rules",
  },
  "POST /agents/{name}/{id}/dispatch": {
    ...instance,
    operation: "dispatchInput",
    summary: "Enqueue an input for an agent",
    description: "Replies once the input is stored. `GET /dispatches/{dispatch_id}` returns its status.",
    headers: ["Idempotency-Key"],
    body: dispatchBodySchema,
    reply: dispatchAcceptedSchema,
    status: 202,
    errors: ["agent_not_found", "agent_not_webhook", "conflict", "unavailable", "store_unavailable"],
    action: "agent.dispatch",
    itemAction: "agent.omit_rules",
  },
  "GET /agents/{name}/{id}/events": {
    ...instance,
    operation: "streamInstanceEvents",
    summary: "Stream the events of an instance",
    description:
      "From the first event, or after the event that `Last-Event-ID` or `after` names; with `after=now` only new events.",
    headers: ["Last-Event-ID", "Kit-Stream"],
    query: instanceEventsQuerySchema,
    reply: eventSchema,
    stream: "always",
    errors: ["agent_not_found", "agent_not_webhook", "unavailable", "store_unavailable"],
    action: "agent.read",
  },
  "GET /agents/{name}/{id}/history": {
    ...instance,
    operation: "getHistory",
    summary: "The messages of a session, oldest first",
    description:
      "Without `limit`: the messages in the model's context now; after a compaction, its summary and the messages that it kept. With `limit`: pages of all messages, the newest page first. Continue with the event stream after `event_index` of the newest page: no message is lost or repeated.",
    query: historyQuerySchema,
    reply: historySchema,
    errors: ["agent_not_found", "agent_not_webhook", "not_found"],
    action: "agent.read",
  },
  "GET /agents/{name}/{id}/operations": {
    ...instance,
    operation: "listOperations",
    summary: "The operations of an instance, newest first",
    description:
      "Prompts and other work, each with the indexes of its first and last event. Tasks belong to other operations.",
    query: operationsQuerySchema,
    reply: operationPageSchema,
    errors: ["agent_not_found", "agent_not_webhook"],
    action: "agent.read",
  },
  "GET /agents/{name}/{id}/operations/{operation_id}/events": {
    tag: "agents",
    parameters: { ...parameters, operation_id: "`operation_id` from `GET /agents/{name}/{id}/operations`." },
    operation: "listOperationEvents",
    summary: "The events of an operation and of its tasks, oldest first",
    description:
      "With `Accept: text/event-stream` the reply streams them to the end of the operation, also of one that is still queued; `limit` has no effect then.",
    headers: ["Last-Event-ID"],
    query: operationEventsQuerySchema,
    reply: operationEventsSchema,
    stream: "asked",
    hasEnd: true,
    errors: ["agent_not_found", "agent_not_webhook", "not_found"],
    action: "agent.read",
  },
  "GET /agents/{name}/{id}/turns/{turn_id}": {
    tag: "agents",
    parameters: turnParameters,
    operation: "getTurn",
    summary: "The exact request and answer of a turn",
    description:
      "The system prompt, the messages, the tools and the settings that the model was sent, with secrets masked. System prompts and tools are kept for 30 days after their last use; `missing` lists the parts that are not stored.",
    query: turnQuerySchema,
    reply: turnSchema,
    errors: ["agent_not_found", "agent_not_webhook", "not_found"],
    action: "agent.read",
  },
  "POST /agents/{name}/{id}/turns/{turn_id}/fork": {
    tag: "agents",
    parameters: turnParameters,
    operation: "forkTurn",
    summary: "Repeat a turn in a new session, with another model or without a rule",
    description:
      "The new session starts with the history of the turn's prompt, and the model answers it again. Files of the workspace stay as they are now; tools run as usual.",
    body: forkBodySchema,
    reply: forkedSchema,
    status: 202,
    errors: [
      "agent_not_found",
      "agent_not_webhook",
      "not_found",
      "conflict",
      "unavailable",
      "store_unavailable",
    ],
    action: "agent.prompt",
    itemAction: "agent.omit_rules",
  },
  "POST /agents/{name}/{id}/abort": {
    ...instance,
    operation: "abortInstance",
    summary: "Abort the running work of an instance",
    body: abortBodySchema,
    reply: abortedSchema,
    errors: ["agent_not_found", "agent_not_webhook"],
    action: "agent.abort",
    repeatable: true,
  },
  "DELETE /agents/{name}/{id}": {
    ...instance,
    operation: "deleteInstance",
    summary: "Delete an instance: its sessions, workspaces and events",
    description: "Aborts its running work.",
    reply: deletedSchema,
    errors: ["agent_not_found", "agent_not_webhook", "not_found"],
    action: "agent.delete",
  },
});

const approvalParameters = { ...parameters, approval_id: "`approval_id` of the `approval_request` event." };

/** Tool calls that wait for an approval decision. */
export const approvalRoutes = defineRoutes({
  "GET /approvals": {
    tag: "agents",
    operation: "listAllApprovals",
    summary: "The tool calls of all agents that wait for approval, oldest first",
    query: approvalQuerySchema,
    reply: approvalPageSchema,
    itemAction: "agent.read",
  },
  "GET /agents/{name}/{id}/approvals": {
    ...instance,
    operation: "listApprovals",
    summary: "Tool calls that wait for approval, oldest first",
    query: oneSessionQuerySchema,
    reply: approvalListSchema,
    errors: ["agent_not_found", "agent_not_webhook"],
    action: "agent.read",
  },
  "POST /agents/{name}/{id}/approvals/{approval_id}": {
    tag: "agents",
    parameters: approvalParameters,
    operation: "decideApproval",
    summary: "Approve or deny a tool call",
    body: approvalBodySchema,
    reply: decidedSchema,
    errors: ["agent_not_found", "agent_not_webhook", "not_found"],
    action: "agent.approve",
  },
  "GET /agents/{name}/{id}/approvals/{approval_id}/rules": {
    tag: "agents",
    parameters: approvalParameters,
    operation: "listAllowRules",
    summary: "Rules that would allow calls like a waiting one without an approval",
    reply: allowChoicesSchema,
    errors: ["agent_not_found", "agent_not_webhook", "not_found"],
    action: "agent.read",
  },
  "POST /agents/{name}/{id}/approvals/{approval_id}/rules": {
    tag: "agents",
    parameters: approvalParameters,
    operation: "writeAllowRule",
    summary: "Write one of these rules to the project's kit.toml",
    description:
      "Accepts only rules that the GET offers; the rule applies at once. The call itself still waits for its decision.",
    body: allowBodySchema,
    reply: allowedSchema,
    errors: ["agent_not_found", "agent_not_webhook", "not_found", "conflict", "unavailable"],
    action: "agent.approve",
    itemAction: "agent.allow",
  },
});

/** The list of calls and runs that wait for a person. */
export const waitingRoutes = defineRoutes({
  "GET /waiting": {
    tag: "agents",
    operation: "listWaiting",
    summary: "What waits for a person, oldest first",
    description:
      "The tool calls that wait for approval, the runs that wait for a signal, and the MCP servers that ask this machine for a login. Only what the sender may read: calls as `GET /approvals` lists them, runs as `GET /runs` does, logins with the action `mcp.login`.",
    query: waitingQuerySchema,
    reply: waitingPageSchema,
    itemAction: "agent.read",
  },
});

const defaultAgent = {
  tag: "agents",
  parameters: { session: "The session's name." },
  headers: ["Idempotency-Key"],
  body: promptRequestSchema,
  reply: promptReplySchema,
  errors: promptErrors,
  action: "agent.prompt",
  itemAction: "agent.omit_rules",
} as const;

/** The project's default agent, for projects that need only one. */
export const promptRoutes = defineRoutes({
  "POST /prompt/{session}": {
    ...defaultAgent,
    operation: "prompt",
    summary: "Prompt the project's default agent",
    description:
      "The instance `default` of the agent `default`, which every project has, also without a file for it.",
    stream: "asked",
  },
  "POST /prompt/{session}/events": {
    ...defaultAgent,
    operation: "streamPrompt",
    summary: "Prompt the project's default agent and stream its events",
    stream: "always",
  },
});

const sessions = { tag: "sessions", errors: ["unavailable", "store_unavailable"] } as const;

/** Sessions of all agents, and the removal of old ones. */
export const sessionRoutes = defineRoutes({
  "GET /sessions": {
    ...sessions,
    operation: "listSessions",
    summary: "Sessions of all agents, with title, state, cost and last use",
    description:
      "Only sessions that the sender may read; a page can hold fewer than `limit`. In the order of their creation, or with `order=recent` the last used first.",
    query: sessionsQuerySchema,
    reply: sessionPageSchema,
    itemAction: "agent.read",
  },
  "GET /api/guidelines/usage": {
    ...sessions,
    tag: "guidelines",
    operation: "readGuidelineUsage",
    summary: "How often sessions were shown the rules of the project, and what that cost",
    description:
      "Adds up the receipts in the logs of the sessions that the sender may read, one log after the other: narrow it with `since` where there are many. Leaves out agents with their own session store.",
    query: guidelineUsageQuerySchema,
    reply: guidelineUsageSchema,
    action: "project.read",
    itemAction: "agent.read",
  },
  "POST /sessions/prune": {
    ...sessions,
    operation: "pruneSessions",
    summary: "Remove sessions that were not used for long, with their workspaces",
    description:
      "Checks one page; continue with `next_cursor`. Keeps sessions that are active or have waiting callers or listeners, and sessions that the sender may not delete.",
    body: pruneBodySchema,
    reply: prunedPageSchema,
    itemAction: "agent.delete",
    repeatable: true,
  },
});
