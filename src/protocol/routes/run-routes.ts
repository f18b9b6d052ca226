import { clusterSchema } from "../cluster.ts";
import {
  cancelledPageSchema,
  cancelledSchema,
  cancelManyBodySchema,
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
  cancelledRunsSchema,
  cancelRunsBodySchema,
  journalPageSchema,
  journalQuerySchema,
  payloadSchema,
  retriedRunsSchema,
  retryRunsBodySchema,
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

const dispatch = { tag: "dispatches", parameters: { dispatch_id: "`dispatch_id` of the receipt." } } as const;

/** Enqueued inputs and their outcomes. */
export const dispatchRoutes = defineRoutes({
  "GET /dispatches": {
    tag: "dispatches",
    operation: "listDispatches",
    summary: "Dispatches, newest first",
    description: "`status=failed` lists the dead letters: inputs whose attempts have all failed.",
    query: dispatchQuerySchema,
    reply: dispatchPageSchema,
    action: "dispatch.list",
    itemAction: "dispatch.read",
  },
  "POST /dispatches/retry": {
    tag: "dispatches",
    operation: "retryDispatches",
    summary: "Retry dead letters, page by page",
    description:
      "Retries the dead letters that the sender may retry, newest first, with a full number of attempts; each goes to the end of its session's queue. `ids` names them; otherwise those that match the filter, one page at a time.",
    body: retryManyBodySchema,
    reply: retriedPageSchema,
    action: "dispatch.list",
    itemAction: "dispatch.retry",
  },
  "POST /dispatches/cancel": {
    tag: "dispatches",
    operation: "cancelDispatches",
    summary: "Cancel several dispatches",
    description:
      "Cancels those in `ids`, or the open ones that match the filter and that the sender may cancel, newest first, one page at a time.",
    body: cancelManyBodySchema,
    reply: cancelledPageSchema,
    action: "dispatch.list",
    itemAction: "dispatch.cancel",
    repeatable: true,
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
    summary: "Retry a dead letter",
    description: "With a full number of attempts, at the end of its session's queue.",
    body: emptyBodySchema,
    reply: dispatchRecordSchema,
    errors: ["not_found", "conflict"],
    action: "dispatch.retry",
  },
  "POST /dispatches/{dispatch_id}/cancel": {
    ...dispatch,
    operation: "cancelDispatch",
    summary: "Cancel a queued input, or abort the work on it",
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
    summary: "The schedules of workflows, with their next times",
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
      "Replies 202 once the run is stored; with `wait=result`, 200 with the result, or the run's error. With `Accept: text/event-stream` the reply streams the run's events, then one `result` or `error`. A run continues if its client disconnects. The workflow `kit.verify` is kit's own: it judges the work tree (`feature`, `task`, `criteria`, `since`; all optional), and needs the action `project.verify`.",
    parameters: { name: "The workflow's name." },
    headers: ["Idempotency-Key"],
    query: startRunQuerySchema,
    hasOwnQuery: true,
    body: payloadSchema,
    reply: runAcceptedSchema,
    status: 202,
    replyAtEnd: runCompletedSchema,
    stream: "asked",
    // A run fails with the code of the error that its workflow threw: these are the codes of agents in a workflow.
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
  "POST /runs/cancel": {
    tag: "runs",
    operation: "cancelRuns",
    summary: "Cancel several runs",
    description:
      "Cancels those in `ids`, or the open ones that match the filter and that the sender may cancel, newest first, one page at a time.",
    body: cancelRunsBodySchema,
    reply: cancelledRunsSchema,
    action: "run.list",
    itemAction: "run.cancel",
    repeatable: true,
  },
  "POST /runs/retry": {
    tag: "runs",
    operation: "retryRuns",
    summary: "Continue several failed runs where they were",
    description:
      "Retries those in `ids`, or the failed ones that match the filter and that the sender may retry, newest first, one page at a time.",
    body: retryRunsBodySchema,
    reply: retriedRunsSchema,
    action: "run.list",
    itemAction: "run.retry",
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
    summary: "Stream the events of a run until its end",
    description:
      "From the first event, or after the event that `Last-Event-ID` or `after` names. The last event is one `result` or `error`; a client that reconnects after it with `Last-Event-ID` gets 204.",
    headers: ["Last-Event-ID"],
    query: runStreamQuerySchema,
    reply: eventSchema,
    stream: "always",
    hasEnd: true,
    errors: ["run_not_found", "unavailable", "store_unavailable"],
    action: "run.read",
  },
  "GET /runs/{run_id}/journal": {
    ...run,
    operation: "listRunJournal",
    summary: "The journal of a run: its steps, sleeps and waits with their results",
    query: journalQuerySchema,
    reply: journalPageSchema,
    errors: ["run_not_found", "unavailable"],
    action: "run.read",
  },
  "POST /runs/{run_id}/retry": {
    ...run,
    operation: "retryRun",
    summary: "Continue a failed run where it was",
    description:
      "Its ended calls keep their results, except the failed ones at which it ended; its attempts start anew.",
    body: emptyBodySchema,
    reply: runRecordSchema,
    errors: ["run_not_found", "conflict"],
    action: "run.retry",
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
    summary: "Send a signal to a run",
    description: "A signal that arrives before the run waits for it is kept.",
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
    summary: "The nodes that share the work, their load and their faults",
    description: "A single node if one process does all the work.",
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
    summary: "Deliveries to webhooks, newest first",
    description:
      "Includes refused deliveries; without bodies and headers. Deliveries are kept as long as ended work: at most the newest 10,000 of each webhook, and 1,000 unverified ones.",
    query: deliveryQuerySchema,
    reply: deliveryPageSchema,
    itemAction: "webhook.list",
  },
  "POST /webhooks/{name}": {
    tag: "webhooks",
    operation: "receiveWebhook",
    summary: "Receive a signed delivery",
    description:
      "Needs no API key: the signature over the raw body replaces it (Standard Webhooks, GitHub or Slack). A repeated delivery gets the reply of the first one and is not handled again. The handler in src/webhooks can reply 200 with its own body.",
    parameters: { name: "The webhook's name." },
    reply: webhookAcceptedSchema,
    status: 202,
    hasOwnReply: true,
    errors: [
      "invalid_json",
      "invalid_signature",
      "stale_timestamp",
      "agent_not_found",
      "payload_too_large",
      "unsupported_media_type",
      "unavailable",
      "store_unavailable",
    ],
  },
});
