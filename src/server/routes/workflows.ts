import {
  payloadSchema,
  runAcceptedSchema,
  runCompletedSchema,
  startRunQuerySchema,
  workflowListSchema,
} from "../../protocol/run.ts";
import { principalOf } from "../instance-request.ts";
import { checkWorkflow } from "../reachable-agent.ts";
import { jsonReply } from "../reply.ts";
import { readIdempotencyKey } from "../request/read-headers.ts";
import { defineRoute, type Route } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";
import { streamRun, toCompleted } from "../stream/run-stream.ts";
import { wantsEvents } from "../stream/server-sent-events.ts";

const tag = "workflows";

/** `/workflows`: what there is, and a run of it. */
export function workflowRoutes(context: ServiceContext): readonly Route[] {
  const { service, authorization } = context;
  return [
    defineRoute({
      operation: "listWorkflows",
      method: "GET",
      path: "/workflows",
      summary: "The workflows of the project",
      tag,
      reply: workflowListSchema,
      async handle({ principal }) {
        const workflows = await authorization.permitted(service.app.workflows(), ({ name }) => ({
          principal,
          action: "workflow.list",
          workflow: name,
        }));
        return { workflows: workflows.map(({ name, path }) => ({ name, path })) };
      },
    }),
    defineRoute({
      operation: "startRun",
      method: "POST",
      path: "/workflows/{name}",
      summary: "Run a workflow",
      description:
        "Answers 202 once the run is on disk; with `wait=result` 200 with its result, or its error. With `Accept: text/event-stream` the reply is the run's events, then one `result` or `error`. A run goes on when its client goes away.",
      tag,
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
      async guard({ segment, principal }) {
        const workflow = segment("name");
        await authorization.check({ principal, action: "workflow.run", workflow });
        checkWorkflow(service.app, workflow);
      },
      async handle(input) {
        const idempotencyKey = readIdempotencyKey(input);
        const streams = wantsEvents(input.accept);
        const place = streams ? context.streams.reserve(input.principal) : undefined;
        const waits = input.query.wait === "result" && !streams;
        const gone = waits ? input.untilGone({ silent: true }) : undefined;
        const start = service.startRun(input.segment("name"), input.body, {
          request: input.raw,
          ...principalOf(input),
          ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
        });
        start.catch(() => place?.release());
        const { run_id } = await start;
        if (place !== undefined) return streamRun(context, run_id, { place });
        if (gone === undefined) return { status: "accepted", run_id };
        return jsonReply(
          context.masked(toCompleted(run_id, await service.engine.awaitRun(run_id, { signal: gone }))),
        );
      },
    }),
  ];
}
