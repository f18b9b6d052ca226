import { clusterSchema } from "../cluster.ts";
import {
  cancelledSchema,
  deliveryPageSchema,
  deliveryQuerySchema,
  dispatchPageSchema,
  dispatchQuerySchema,
  dispatchRecordSchema,
  retriedPageSchema,
  retryManyBodySchema,
  webhookAcceptedSchema,
} from "../dispatch.ts";
import { eventSchema } from "../event.ts";
import { emptyBodySchema } from "../fields.ts";
import {
  journalPageSchema,
  journalQuerySchema,
  payloadSchema,
  runAcceptedSchema,
  runCompletedSchema,
  runEventPageSchema,
  runEventsQuerySchema,
  runPageSchema,
  runQuerySchema,
  runRecordSchema,
  runStreamQuerySchema,
  scheduleListSchema,
  signalAcceptedSchema,
  signalBodySchema,
  startRunQuerySchema,
  workflowListSchema,
} from "../run.ts";
import { defineRoutes } from "./route.ts";

const dispatch = { tag: "dispatches", parameters: { dispatch_id: "As the receipt names it." } } as const;

/** Inputs that were handed over, and their outcome. */
export const dispatchRoutes = defineRoutes({
  "GET /dispatches": {
    tag: "dispatches",
    operation: "listDispatches",
    summary: "Dispatches, newest first",
    description: "`status=failed` lists the dead letters: inputs whose attempts are used up.",
    query: dispatchQuerySchema,
    reply: dispatchPageSchema,
    action: "dispatch.list",
    itemAction: "dispatch.read",
  },
  "POST /dispatches/retry": {
    tag: "dispatches",
    operation: "retryDispatches",
    summary: "Give dead letters their attempts again, page by page",
    description: "Those that the sender may retry, newest first; each goes to the end of its session's line.",
    body: retryManyBodySchema,
    reply: retriedPageSchema,
    action: "dispatch.list",
    itemAction: "dispatch.retry",
  },
  "GET /dispatches/{dispatch_id}": {
    ...dispatch,
    operation: "getDispatch",
    summary: "One dispatch",
    reply: dispatchRecordSchema,
    errors: ["not_found"],
    action: "dispatch.read",
  },
  "POST /dispatches/{dispatch_id}/retry": {
    ...dispatch,
    operation: "retryDispatch",
    summary: "Give a dead letter its attempts again",
    description: "It goes to the end of its session's queue.",
    body: emptyBodySchema,
    reply: dispatchRecordSchema,
    errors: ["not_found", "conflict"],
    action: "dispatch.retry",
  },
  "POST /dispatches/{dispatch_id}/cancel": {
    ...dispatch,
    operation: "cancelDispatch",
    summary: "Take back an input that waits, or abort the work on it",
    body: emptyBodySchema,
    reply: cancelledSchema,
    errors: ["not_found"],
    action: "dispatch.cancel",
    repeatable: true,
  },
});

export const workflowRoutes = defineRoutes({
  "GET /schedules": {
    tag: "workflows",
    operation: "listSchedules",
    summary: "When workflows run by themselves, with their next times",
    reply: scheduleListSchema,
    itemAction: "schedule.list",
  },
  "GET /workflows": {
    tag: "workflows",
    operation: "listWorkflows",
    summary: "The workflows of the project",
    reply: workflowListSchema,
    itemAction: "workflow.list",
  },
  "POST /workflows/{name}": {
    tag: "workflows",
    operation: "startRun",
    summary: "Run a workflow",
    description:
      "Answers 202 once the run is on disk; with `wait=result` 200 with its result, or its error. With `Accept: text/event-stream` the reply is the run's events, then one `result` or `error`. A run goes on when its client goes away.",
    parameters: { name: "The workflow's name." },
    headers: ["Idempotency-Key"],
    query: startRunQuerySchema,
    body: payloadSchema,
    reply: runAcceptedSchema,
    status: 202,
    replyAtEnd: runCompletedSchema,
    stream: "asked",
    // A run ends with whatever its workflow threw: these are what agents in it can end with.
    errors: [
      "workflow_not_found",
      "conflict",
      "aborted",
      "budget_exceeded",
      "python_error",
      "typed_output",
      "model_error",
      "context_overflow",
      "model_timeout",
      "unavailable",
      "store_unavailable",
    ],
    action: "workflow.run",
  },
});

const run = { tag: "runs", parameters: { run_id: "`run_` and a ULID." } } as const;

/** Runs of workflows, their events, and signals to those that wait. */
export const runRoutes = defineRoutes({
  "GET /runs": {
    tag: "runs",
    operation: "listRuns",
    summary: "Runs, newest first",
    query: runQuerySchema,
    reply: runPageSchema,
    action: "run.list",
    itemAction: "run.read",
  },
  "GET /runs/{run_id}": {
    ...run,
    operation: "getRun",
    summary: "One run",
    reply: runRecordSchema,
    errors: ["run_not_found"],
    action: "run.read",
  },
  "GET /runs/{run_id}/events": {
    ...run,
    operation: "listRunEvents",
    summary: "The events of a run, oldest first",
    query: runEventsQuerySchema,
    reply: runEventPageSchema,
    errors: ["run_not_found"],
    action: "run.read",
  },
  "GET /runs/{run_id}/stream": {
    ...run,
    operation: "streamRunEvents",
    summary: "The events of a run as they are made, to its end",
    description:
      "From the first event, or after the one that `Last-Event-ID` or `after` names. The last event is one `result` or `error`; who connects again after it with `Last-Event-ID` gets 204.",
    headers: ["Last-Event-ID"],
    query: runStreamQuerySchema,
    reply: eventSchema,
    stream: "always",
    errors: ["run_not_found", "unavailable", "store_unavailable"],
    action: "run.read",
  },
  "GET /runs/{run_id}/journal": {
    ...run,
    operation: "listRunJournal",
    summary: "The journal of a run: its steps, sleeps and waits with what they gave",
    query: journalQuerySchema,
    reply: journalPageSchema,
    errors: ["run_not_found", "unavailable"],
    action: "run.read",
  },
  "POST /runs/{run_id}/cancel": {
    ...run,
    operation: "cancelRun",
    summary: "Cancel a run",
    body: emptyBodySchema,
    reply: cancelledSchema,
    errors: ["run_not_found"],
    action: "run.cancel",
    repeatable: true,
  },
  "POST /runs/{run_id}/signal": {
    ...run,
    operation: "signalRun",
    summary: "Hand a run the value that it waits for",
    description: "What comes before the run waits for it is kept.",
    headers: ["Idempotency-Key"],
    body: signalBodySchema,
    reply: signalAcceptedSchema,
    status: 202,
    errors: ["run_not_found", "conflict"],
    action: "run.signal",
  },
});

/** The processes that share the work. */
export const clusterRoutes = defineRoutes({
  "GET /cluster": {
    tag: "service",
    operation: "getCluster",
    summary: "The nodes that share the work, what they do, and what is wrong with them",
    description: "One node where one process does all of the work.",
    reply: clusterSchema,
    errors: ["unavailable", "store_unavailable"],
    action: "cluster.read",
  },
});

/** Deliveries of signed senders. */
export const webhookRoutes = defineRoutes({
  "GET /deliveries": {
    tag: "webhooks",
    operation: "listDeliveries",
    summary: "What senders of webhooks have delivered, newest first",
    description:
      "Refused ones too, without their bodies and headers. They are kept as long as ended work, the newest 10,000 of each webhook, and 1,000 that were not verified.",
    query: deliveryQuerySchema,
    reply: deliveryPageSchema,
    itemAction: "webhook.list",
  },
  "POST /webhooks/{name}": {
    tag: "webhooks",
    operation: "receiveWebhook",
    summary: "Take a signed delivery",
    description:
      "Needs no key: the signature over the raw body takes its place (Standard Webhooks, GitHub or Slack). A delivery that comes again gives the reply of the first, and is not handled again. The file in src/webhooks may answer 200 with a body of its own.",
    parameters: { name: "The webhook's name." },
    reply: webhookAcceptedSchema,
    status: 202,
    hasOwnReply: true,
    errors: [
      "invalid_json",
      "invalid_signature",
      "stale_timestamp",
      "not_found",
      "agent_not_found",
      "payload_too_large",
      "unsupported_media_type",
      "unavailable",
      "store_unavailable",
    ],
  },
});
