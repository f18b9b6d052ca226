import { jsonSchemaOf } from "../../agents/output/typed-output.ts";
import { startActionOf } from "../../protocol/built-in-workflows.ts";
import { workflowRoutes } from "../../protocol/routes/run-routes.ts";
import { readIdempotencyKey } from "../request/read-request.ts";
import { bindRoutes, EndReply, type Handlers, type Route } from "../route.ts";
import { checkWorkflow, type ServiceContext } from "../service-context.ts";
import { acceptsEvents } from "../streams/event-streams.ts";
import { streamRun, toCompleted } from "../streams/run-stream.ts";

/** `/workflows`: the list of them, and starting a run of one. */
export function bindWorkflowRoutes(context: ServiceContext): readonly Route[] {
  const { service, authorization } = context;
  const handlers: Handlers<typeof workflowRoutes> = {
    async "GET /workflows"({ principal, itemAction: action }) {
      const workflows = await authorization.permitted(service.app.workflows(), ({ name }) => ({
        principal,
        action,
        workflow: name,
      }));
      return {
        workflows: workflows.map(({ name, path, payload }) => ({
          name,
          path,
          payload_schema: payload === undefined ? undefined : jsonSchemaOf(payload),
        })),
      };
    },
    async "GET /schedules"({ principal, itemAction: action }) {
      const schedules = await authorization.permitted(
        await service.engine.listSchedules(),
        ({ workflow }) => ({ principal, action, workflow }),
      );
      return { schedules };
    },
    async "POST /workflows/{name}"(input) {
      const idempotencyKey = readIdempotencyKey(input);
      const streams = acceptsEvents(input.accept);
      const slot = streams ? context.streams.reserve(input.principal) : undefined;
      const waits = input.query.wait === "result" && !streams;
      const clientGone = waits ? input.clientGone({ silent: true }) : undefined;
      const start = service.startRun(input.segment("name"), input.body, {
        request: input.raw,
        principal: input.principal?.id,
        idempotencyKey,
        receivedAt: input.receivedAt,
      });
      start.catch(() => slot?.release());
      const { run_id, error } = await start;
      if (slot !== undefined) return streamRun(context, run_id, { slot });
      if (clientGone === undefined)
        return error === undefined ? { status: "accepted", run_id } : { status: "failed", run_id, error };
      return new EndReply(toCompleted(run_id, await service.engine.awaitRun(run_id, { signal: clientGone })));
    },
  };
  return bindRoutes(workflowRoutes, handlers, async ({ segment, principal, action }) => {
    const workflow = segment("name");
    if (action !== undefined)
      await authorization.check({ principal, action: startActionOf(workflow), workflow });
    checkWorkflow(service.app, workflow);
  });
}
