import { realpathSync } from "node:fs";
import { toProfile } from "../../app/config/agent-config.ts";
import type { LoadedConfig } from "../../app/config/load-config.ts";
import { AgentWrites } from "../../app/sources/agent-writes.ts";
import { commandListProblems } from "../../app/sources/command-list-problems.ts";
import type { SourceProblem } from "../../app/sources/discover-sources.ts";
import { followSources } from "../../app/sources/follow-sources.ts";
import type { LoadedWebhook } from "../../app/sources/load-source.ts";
import { loadProjectSources } from "../../app/sources/sources.ts";
import { webhooksWithoutSecret } from "../../app/sources/webhooks-without-secret.ts";
import { count } from "../render/places.ts";
import type { Check } from "./check.ts";
import { checkDescriptions } from "./check-prompts.ts";

/**
 * Loads what the project has for agents, as `kit run` does. Nothing is said of a project that has none;
 * of a file that cannot be used, its first reason, on a line of its own. A webhook needs a secret of the
 * environment, too.
 */
export async function checkAgents(
  root: string,
  { config, environment: env }: LoadedConfig,
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
    const lists = checkCommandLists(commandListProblems(agents, toProfile(config.agent)));
    if (parts.length === 0 && problems.length === 0) return lists;
    const message = parts.length === 0 ? "None that can be used." : parts.join(", ");
    const prompts = await checkDescriptions(agents, env);
    const more = [...lists, ...checkSecrets(webhooksWithoutSecret(webhooks, env)), ...prompts];
    if (problems.length === 0) return [{ name: "agents", status: "ok", message }, ...more];
    // What stops work comes first, so that nobody looks for it among remarks.
    const ordered = [...problems].sort((one, other) => Number(isHarmless(one)) - Number(isHarmless(other)));
    return [
      {
        name: "agents",
        status: problems.every(isHarmless) ? "warning" : "error",
        message: `${message}; ${count(problems.length, "problem")}`,
        hint: ordered.map((problem) => `${problem.path}: ${problem.message}`).join("\n"),
      },
      ...more,
    ];
  } finally {
    hooks.deregister();
  }
}

function isHarmless({ isHarmless = false }: SourceProblem): boolean {
  return isHarmless;
}

function checkCommandLists(problems: readonly SourceProblem[]): readonly Check[] {
  if (problems.length === 0) return [];
  return [
    {
      name: "command lists",
      status: "warning",
      message:
        problems.length === 1
          ? "An entry of a command list allows nothing."
          : `${count(problems.length, "entry", "entries")} of command lists allow nothing.`,
      hint: problems.map(({ path, message }) => `${path}: ${message}`).join("\n"),
    },
  ];
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
