import type { Exposure } from "../app/config/server-schema.ts";
import type { App } from "../app/service/app.ts";
import type { InstanceTarget, Service } from "../app/service/service.ts";
import type { LoadedAgent, SourceProblem } from "../app/sources/discover-sources.ts";
import { KitError } from "../base/kit-error.ts";
import { isBuiltInName } from "../protocol/built-in-workflows.ts";
import type { ErrorEnvelope } from "../protocol/errors.ts";
import type { Authorization } from "./access/authorize.ts";
import type { ServerLimits } from "./limits.ts";
import type { RouteRequest } from "./route.ts";
import type { EventStreams } from "./streams/event-streams.ts";

/** The parts that the routes of runs and dispatches share: they only need the engine. */
export interface WorkContext {
  readonly service: Pick<Service, "engine">;
  readonly authorization: Authorization;
  readonly streams: EventStreams;
  readonly limits: ServerLimits;
  /** Masks the application's secrets in a value before it is sent. */
  readonly masked: <Value>(value: Value) => Value;
  /** Converts an error to the body of an error reply, and reports internal errors. */
  readonly toEnvelope: (error: unknown) => ErrorEnvelope;
}

/** The parts that the routes of agents and workflows share. */
export interface ServiceContext extends WorkContext {
  readonly service: Service;
  readonly reach: Reach;
}

/** Returns the instance that a request to `/agents/{name}/{id}…` names. */
export function instanceOf({ segment }: Pick<RouteRequest<"name" | "id">, "segment">): InstanceTarget {
  return { agent: segment("name"), instance_id: segment("id") };
}

/** Throws if the sender is not permitted, or the agent is not reachable over HTTP. */
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
 * Throws `agent_not_found` or `agent_not_webhook` for an agent that is not reachable over HTTP. Neither error lists the
 * agents.
 */
export function checkAgent(
  { service: { app }, reach }: { readonly service: { readonly app: App }; readonly reach: Reach },
  name: string,
): void {
  const agent = app.agents().find((loaded) => loaded.name === name);
  if (agent === undefined) checkMissing(app, reach, name);
  if (reach.serves(agent)) return;
  throw new KitError({
    code: "agent_not_webhook",
    message:
      agent === undefined
        ? "The default agent is not served over HTTP: that takes a file src/agents/default.ts with triggers."
        : "This agent is not served over HTTP.",
  });
}

/** Throws for a name without a usable file, except the name of the default agent. */
function checkMissing(app: App, reach: Reach, name: string): void {
  const problem = app.problems().find(({ source }) => source?.kind === "agent" && source.name === name);
  if (problem === undefined && name === defaultAgentName) return;
  throw new KitError({
    code: "agent_not_found",
    message:
      problem === undefined
        ? "There is no agent of this name."
        : "This agent cannot be used: its file is broken.",
    hint: hintFor(
      problem,
      "agents",
      app.agents().filter((agent) => reach.serves(agent)),
    ),
  });
}

/** Throws `workflow_not_found` for a workflow without a usable file, unless it is kit's own: starting its run tells whether it is there. */
export function checkWorkflow(app: App, name: string): void {
  if (isBuiltInName(name)) return;
  if (app.workflows().some((workflow) => workflow.name === name)) return;
  const problem = app.problems().find(({ source }) => source?.kind === "workflow" && source.name === name);
  throw new KitError({
    code: "workflow_not_found",
    message:
      problem === undefined
        ? "There is no workflow of this name."
        : "This workflow cannot be used: its file is broken.",
    hint: hintFor(problem, "workflows", app.workflows()),
  });
}

/** Why a file cannot be used, or which names there are. Only `kit dev` sends hints to callers. */
function hintFor(
  problem: SourceProblem | undefined,
  what: string,
  known: readonly { readonly name: string }[],
): string {
  if (problem !== undefined) return `${problem.path}: ${problem.message}`;
  return known.length === 0
    ? `This project has no ${what}.`
    : `The ${what} are: ${known.map(({ name }) => name).join(", ")}.`;
}

/** Decides which agents are reachable over HTTP. */
export interface Reach {
  /** Whether requests reach the agent; undefined is the default agent without a file. */
  serves(agent: Pick<LoadedAgent, "triggers"> | undefined): boolean;
  /** Whether requests reach the agent only in `kit dev`: `kit start` would answer 404. */
  isDevOnly(agent: Pick<LoadedAgent, "triggers">): boolean;
}

/** `isOpen` returns whether the server serves every agent, because only its developer can reach the server. */
export function createReach(expose: Exposure, isOpen: () => boolean): Reach {
  const serves: Reach["serves"] = (agent) => expose === "all" || agent?.triggers.webhook === true || isOpen();
  return {
    serves,
    isDevOnly: (agent) => expose !== "all" && !agent.triggers.webhook && isOpen(),
  };
}
