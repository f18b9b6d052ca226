import { realpathSync } from "node:fs";
import { AgentWrites } from "../../app/agents/agent-writes.ts";
import { followSources } from "../../app/agents/follow-sources.ts";
import { loadProjectSources } from "../../app/agents/load-project-sources.ts";
import type { LoadedWebhook } from "../../app/agents/load-source.ts";
import { webhooksWithoutSecret } from "../../app/webhooks-without-secret.ts";
import { count } from "../render/places.ts";
import type { Check } from "./check.ts";

/**
 * Loads what the project has for agents, as `kit run` does. Nothing is said of a project that has none;
 * of a file that cannot be used, its first reason, on a line of its own. A webhook needs a secret of the
 * environment, too.
 */
export async function checkAgents(
  root: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<readonly Check[]> {
  const writes = new AgentWrites(realpathSync(root));
  const hooks = followSources(root, (file, named) => writes.check(file, named));
  try {
    const sources = await loadProjectSources(root, { code: true, ...writes.loading() });
    const { agents, workflows, webhooks, skills, roles, problems } = sources;
    const found = [
      [agents.length, "agent"],
      [workflows.length, "workflow"],
      [webhooks.length, "webhook"],
      [skills.length, "skill"],
      [roles.length, "role"],
    ] as const;
    const parts = found.flatMap(([number, word]) => (number === 0 ? [] : [count(number, word)]));
    if (parts.length === 0 && problems.length === 0) return [];
    const message = parts.length === 0 ? "None that can be used." : parts.join(", ");
    const secretless = checkSecrets(webhooksWithoutSecret(webhooks, env));
    if (problems.length === 0) return [{ name: "agents", status: "ok", message }, ...secretless];
    const hint = problems.map((problem) => `${problem.path}: ${problem.message}`).join("\n");
    return [
      { name: "agents", status: "error", message: `${message}; ${count(problems.length, "problem")}`, hint },
      ...secretless,
    ];
  } finally {
    hooks.deregister();
  }
}

function checkSecrets(secretless: readonly LoadedWebhook[]): readonly Check[] {
  if (secretless.length === 0) return [];
  return [
    {
      name: "webhooks",
      status: "warning",
      message: `No secret for ${secretless.map(({ path }) => path).join(", ")}: every delivery is refused.`,
      hint: "Set the environment variable that the file reads, for instance in a file named with --env.",
    },
  ];
}
