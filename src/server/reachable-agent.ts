import type { App } from "../app/agents/app.ts";
import type { InstanceTarget } from "../app/service/service.ts";
import { KitError } from "../base/kit-error.ts";

/** The name of the project's default agent, which needs no file. */
const defaultAgentName = "default";

/** What `/prompt/{session}` prompts. */
export const defaultInstance: InstanceTarget = { agent: defaultAgentName, instance_id: "default" };

/**
 * Refuses what is not reachable over HTTP. Throws `agent_not_found` or `agent_not_webhook`; neither
 * says which agents there are.
 */
export function checkAgent(app: App, name: string): void {
  const agent = app.agents().find((one) => one.name === name);
  if (agent === undefined) {
    const problem = app.problems().find(({ source }) => source?.kind === "agent" && source.name === name);
    if (problem === undefined && name === defaultAgentName) return;
    throw new KitError({
      code: "agent_not_found",
      message:
        problem === undefined
          ? "There is no agent of this name."
          : "This agent cannot be used: its file is broken.",
      ...(problem === undefined ? {} : { hint: `${problem.path}: ${problem.message}` }),
    });
  }
  if (agent.triggers.webhook) return;
  throw new KitError({
    code: "agent_not_webhook",
    message: "This agent is not reachable over HTTP.",
    hint: `${agent.path} declares triggers = { webhook: false }.`,
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
    ...(problem === undefined ? {} : { hint: `${problem.path}: ${problem.message}` }),
  });
}
