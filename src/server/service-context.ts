import type { Exposure } from "../app/config/server-schema.ts";
import type { App } from "../app/service/app.ts";
import type { InstanceTarget, Service } from "../app/service/service.ts";
import type { LoadedAgent } from "../app/sources/discover-sources.ts";
import { KitError } from "../base/kit-error.ts";
import type { ErrorEnvelope } from "../protocol/errors.ts";
import type { Authorization } from "./access/authorize.ts";
import type { ServerLimits } from "./limits.ts";
import type { RouteRequest } from "./route.ts";
import type { EventStreams } from "./streams/event-streams.ts";

/** The parts that the routes of runs and dispatches share: they need the engine alone. */
export interface WorkContext {
  readonly service: Pick<Service, "engine">;
  readonly authorization: Authorization;
  readonly streams: EventStreams;
  readonly limits: ServerLimits;
  /** Takes the application's keys out of a value that is sent. */
  readonly masked: <Value>(value: Value) => Value;
  /** The body of an error reply; reports what is an error of ours. */
  readonly toEnvelope: (error: unknown) => ErrorEnvelope;
}

/** The parts that the routes of agents and workflows share. */
export interface ServiceContext extends WorkContext {
  readonly service: Service;
  readonly reach: Reach;
}

/** The instance that a request to `/agents/{name}/{id}…` is about. */
export function instanceOf({ segment }: Pick<RouteRequest<"name" | "id">, "segment">): InstanceTarget {
  return { agent: segment("name"), instance_id: segment("id") };
}

/** Refuses senders who may not do this with the instance, and agents that are not reachable. */
export async function guardAgent(
  context: ServiceContext,
  { action, principal }: RouteRequest,
  { agent, instance_id }: InstanceTarget,
): Promise<void> {
  if (action === undefined) return;
  await context.authorization.check({ principal, action, agent, instance: instance_id });
  checkAgent(context, agent);
}

/** The name of the project's default agent, which needs no file. */
const defaultAgentName = "default";

/** The instance that `/prompt/{session}` prompts. */
export const defaultInstance: InstanceTarget = { agent: defaultAgentName, instance_id: "default" };

/**
 * Refuses what is not reachable over HTTP. Throws `agent_not_found` or `agent_not_webhook`; neither
 * says which agents there are.
 */
export function checkAgent(
  { service: { app }, reach }: { readonly service: { readonly app: App }; readonly reach: Reach },
  name: string,
): void {
  const agent = app.agents().find((one) => one.name === name);
  if (agent === undefined) checkMissing(app, name);
  if (reach.serves(agent)) return;
  throw new KitError({
    code: "agent_not_webhook",
    message:
      agent === undefined
        ? "The default agent is not served over HTTP: there is no file src/agents/default.ts that says so."
        : "This agent is not served over HTTP.",
  });
}

/** Throws for a name without a usable file; the default agent needs none. */
function checkMissing(app: App, name: string): void {
  const problem = app.problems().find(({ source }) => source?.kind === "agent" && source.name === name);
  if (problem === undefined && name === defaultAgentName) return;
  throw new KitError({
    code: "agent_not_found",
    message:
      problem === undefined
        ? "There is no agent of this name."
        : "This agent cannot be used: its file is broken.",
    hint: problem && `${problem.path}: ${problem.message}`,
  });
}

/** The same for a workflow. Throws `workflow_not_found`. */
export function checkWorkflow(app: App, name: string): void {
  if (app.workflows().some((one) => one.name === name)) return;
  const problem = app.problems().find(({ source }) => source?.kind === "workflow" && source.name === name);
  throw new KitError({
    code: "workflow_not_found",
    message:
      problem === undefined
        ? "There is no workflow of this name."
        : "This workflow cannot be used: its file is broken.",
    hint: problem && `${problem.path}: ${problem.message}`,
  });
}

/** Which agents a server answers for. */
export interface Reach {
  /** Whether requests reach the agent. The default agent without a file declares nothing. */
  serves(agent: Pick<LoadedAgent, "triggers"> | undefined): boolean;
  /** Whether they reach it only because this is `kit dev`: `kit start` would answer 404. */
  isDevOnly(agent: Pick<LoadedAgent, "triggers">): boolean;
}

/** `isOpen` says whether the server serves every agent because only its developer reaches it. */
export function createReach(expose: Exposure, isOpen: () => boolean): Reach {
  const serves: Reach["serves"] = (agent) => expose === "all" || agent?.triggers.webhook === true || isOpen();
  return {
    serves,
    isDevOnly: (agent) => expose !== "all" && !agent.triggers.webhook && isOpen(),
  };
}
