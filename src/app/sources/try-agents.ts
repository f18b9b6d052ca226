import { join } from "node:path";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import { withDeadline } from "../../base/abort.ts";
import { toSentence } from "../../base/error-text.ts";
import { ownFolder } from "../../base/own-package.ts";
import { packageOfModel } from "../../models/provider-config.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import { faultOfProfile } from "./check-profile.ts";
import { describeFailure, failureLine, withLine } from "./describe-failure.ts";
import type { LoadedAgent, SourceProblem } from "./discover-sources.ts";

export interface TryOptions {
  /** The real path of the project. */
  readonly root: string;
  readonly agents: readonly LoadedAgent[];
  readonly loaded: Pick<LoadedConfig, "config" | "environment">;
  /** Whether the project has the package of a provider of models. */
  readonly hasPackage: (name: string) => boolean;
}

/** How long an agent's function may take to describe it, in ms. */
const describeMs = 5_000;

/**
 * Calls the function of each agent once, as for an instance of the name "check" without a payload, and returns what
 * would fail at its first prompt: a misspelled field, a tool with the name of a built-in one, a model whose package is missing.
 * An agent that needs a payload, or a service that is not available here, is no problem. The function can start no work of the
 * application, and its signal fires when it has ended.
 *
 * @see decisions/2026-11-29-trial-of-agent-functions.md
 */
export async function tryAgents(options: TryOptions): Promise<readonly SourceProblem[]> {
  const found = await Promise.all(options.agents.map((agent) => tryAgent(agent, options)));
  const { config } = options.loaded;
  return [...missingPackages({ path: "agent.model", profile: config.agent ?? {} }, options), ...found.flat()];
}

async function tryAgent(agent: LoadedAgent, options: TryOptions): Promise<readonly SourceProblem[]> {
  const { path, kind, name, definition } = agent;
  const { root, loaded } = options;
  const problem = (message: string): SourceProblem => ({ path, message, source: { kind, name } });
  const ended = new AbortController();
  try {
    const context = { id: "check", env: loaded.environment, payload: {}, signal: ended.signal };
    const profile = await withDeadline(
      Promise.resolve().then(() => definition.describe(context)),
      {
        ms: describeMs,
        onTimeout: () => new Error("It takes too long."),
      },
    );
    const fault = faultOfProfile(profile);
    if (fault !== undefined) return [problem(withLine(toSentence(fault), join(root, path)))];
    return missingPackages({ path, profile }, options);
  } catch (error) {
    return isDefinitionError(error) ? [problem(failureLine(describeFailure(error, root), path))] : [];
  } finally {
    ended.abort();
  }
}

/** `defineTool` and its like throw a `TypeError` themselves; one of the project's code begins in a file of the project. */
function isDefinitionError(error: unknown): error is TypeError {
  if (!(error instanceof TypeError)) return false;
  const first = error.stack?.split("\n").find((line) => line.startsWith("    at "));
  return first?.includes(ownFolder()) === true;
}

function missingPackages(
  { path, profile }: { readonly path: string; readonly profile: Pick<AgentProfile, "model" | "subagents"> },
  options: Pick<TryOptions, "hasPackage" | "root">,
): readonly SourceProblem[] {
  const { hasPackage, root } = options;
  const models = [profile.model ?? []].flat().filter((model) => typeof model === "string");
  const own = models.flatMap((model) => {
    const name = packageOfModel(model);
    if (name === undefined || hasPackage(name)) return [];
    const message = `The package of the model "${model}" is not installed: npm install ${name}.`;
    // The agent's other models, and a caller's, work without it.
    return { path, message: withLine(message, join(root, path)), isHarmless: true };
  });
  const below = (profile.subagents ?? []).flatMap((subagent) =>
    missingPackages({ path, profile: subagent }, options),
  );
  return [...own, ...below];
}
