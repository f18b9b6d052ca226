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
import { defineRoutes } from "./route.ts";

const parameters = { name: "The agent's name.", id: "The instance's id, of the client's choice." } as const;
const turnParameters = { ...parameters, turn_id: "As the events of the turn name it." } as const;
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

/** Prompts, dispatches, events and histories of agents' instances. */
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
      "With `Accept: text/event-stream` the reply is the events as they are made, then one `result` or `error`. A client that goes away aborts the prompt, unless it gave an Idempotency-Key.",
    headers: ["Idempotency-Key"],
    body: promptBodySchema,
    reply: promptReplySchema,
    stream: "asked",
    errors: promptErrors,
    action: "agent.prompt",
  },
  "POST /agents/{name}/{id}/dispatch": {
    ...instance,
    operation: "dispatchInput",
    summary: "Hand an agent an input, to be worked on later",
    description:
      "Answers once the input is on disk. `GET /dispatches/{dispatch_id}` tells what became of it.",
    headers: ["Idempotency-Key"],
    body: dispatchBodySchema,
    reply: dispatchAcceptedSchema,
    status: 202,
    errors: ["agent_not_found", "agent_not_webhook", "conflict", "unavailable", "store_unavailable"],
    action: "agent.dispatch",
  },
  "GET /agents/{name}/{id}/events": {
    ...instance,
    operation: "streamInstanceEvents",
    summary: "The events of an instance, as they are made",
    description:
      "From the first event, or after the one that `Last-Event-ID` or `after` names; with `after=now` from now on.",
    headers: ["Last-Event-ID"],
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
      "Without `limit` what is in the model's context now: after a compaction, its summary and what was kept. With `limit` pages of all that was said, the newest first. `event_index` of the newest page is where the stream of events goes on: no message is lost or comes twice.",
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
      "Prompts and other work, each with where its events begin and end. Tasks are parts of others.",
    query: operationsQuerySchema,
    reply: operationPageSchema,
    errors: ["agent_not_found", "agent_not_webhook"],
    action: "agent.read",
  },
  "GET /agents/{name}/{id}/operations/{operation_id}/events": {
    tag: "agents",
    parameters: { ...parameters, operation_id: "As `GET /agents/{name}/{id}/operations` names it." },
    operation: "listOperationEvents",
    summary: "The events of an operation and of its tasks, oldest first",
    query: operationEventsQuerySchema,
    reply: operationEventsSchema,
    errors: ["agent_not_found", "agent_not_webhook", "not_found"],
    action: "agent.read",
  },
  "GET /agents/{name}/{id}/turns/{turn_id}": {
    tag: "agents",
    parameters: turnParameters,
    operation: "getTurn",
    summary: "What a model was sent in a turn, and what it answered",
    description:
      "The system prompt, the messages, the tools and the settings as they were sent, secrets masked. System prompts and tools are kept for 30 days after their last use; `missing` says what is not there.",
    query: turnQuerySchema,
    reply: turnSchema,
    errors: ["agent_not_found", "agent_not_webhook", "not_found"],
    action: "agent.read",
  },
  "POST /agents/{name}/{id}/turns/{turn_id}/fork": {
    tag: "agents",
    parameters: turnParameters,
    operation: "forkTurn",
    summary: "Do a turn again in a new session, with another model or without a rule",
    description:
      "The new session begins with the history that the turn was asked with, and answers it anew. Files of the workspace stay as they are, and tools run as always.",
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
    summary: "Abort what an instance is doing",
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
    description: "What it is doing is aborted.",
    reply: deletedSchema,
    errors: ["agent_not_found", "agent_not_webhook", "not_found"],
    action: "agent.delete",
  },
});

const approvalParameters = { ...parameters, approval_id: "As the `approval_request` event names it." };

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
    summary: "Rules that would let calls like a waiting one run without an approval",
    reply: allowChoicesSchema,
    errors: ["agent_not_found", "agent_not_webhook", "not_found"],
    action: "agent.read",
  },
  "POST /agents/{name}/{id}/approvals/{approval_id}/rules": {
    tag: "agents",
    parameters: approvalParameters,
    operation: "writeAllowRule",
    summary: "Write such a rule to the project's kit.toml",
    description:
      "It must be one of those that the GET offers, and holds at once. The call itself goes on waiting for its decision.",
    body: allowBodySchema,
    reply: allowedSchema,
    errors: ["agent_not_found", "agent_not_webhook", "not_found", "conflict", "unavailable"],
    action: "agent.approve",
    itemAction: "agent.allow",
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
} as const;

/** The project's default agent, for projects that need no more than one. */
export const promptRoutes = defineRoutes({
  "POST /prompt/{session}": {
    ...defaultAgent,
    operation: "prompt",
    summary: "Prompt the project's default agent",
    description: "The instance `default` of the agent `default`, which a project has without a file, too.",
    stream: "asked",
  },
  "POST /prompt/{session}/events": {
    ...defaultAgent,
    operation: "streamPrompt",
    summary: "Prompt the project's default agent, and see its events",
    stream: "always",
  },
});

const sessions = { tag: "sessions", errors: ["unavailable", "store_unavailable"] } as const;

/** Sessions of all agents, and the removal of old ones. */
export const sessionRoutes = defineRoutes({
  "GET /sessions": {
    ...sessions,
    operation: "listSessions",
    summary: "Sessions of all agents, in the order in which they were made",
    description: "Those that the sender may read; a page may hold fewer than there is room for.",
    query: sessionsQuerySchema,
    reply: sessionPageSchema,
    itemAction: "agent.read",
  },
  "POST /sessions/prune": {
    ...sessions,
    operation: "pruneSessions",
    summary: "Remove sessions that were not touched for long, with their workspaces",
    description:
      "Looks at one page; `next_cursor` goes on. What is at work, waited for or listened to stays, and so does what the sender may not delete.",
    body: pruneBodySchema,
    reply: prunedPageSchema,
    itemAction: "agent.delete",
    repeatable: true,
  },
});
