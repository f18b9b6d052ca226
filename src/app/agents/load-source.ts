import { stat } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type AgentDefinition, isAgentDefinition } from "../../agents/create-agent.ts";
import { answerForKit } from "../answer-for-kit.ts";
import type { SourceFile, SourceProblem } from "./discover-sources.ts";

/** How an agent can be reached from outside; HTTP unless it says otherwise. */
export interface Triggers {
  readonly webhook: boolean;
}

export interface LoadedAgent extends SourceFile {
  readonly kind: "agent";
  readonly definition: AgentDefinition;
  readonly triggers: Triggers;
}

export interface LoadedWorkflow extends SourceFile {
  readonly kind: "workflow";
  readonly run: (context: never) => unknown;
}

export type LoadedSource = LoadedAgent | LoadedWorkflow;

/**
 * Imports a source file as it is: Node runs TypeScript. A file that was changed since is imported
 * anew. What it fails with is a problem to report, never an exception: the others go on working.
 */
export async function loadSource(root: string, source: SourceFile): Promise<LoadedSource | SourceProblem> {
  const file = join(root, source.path);
  const hooks = answerForKit();
  try {
    const { mtimeMs } = await stat(file);
    const module: Record<string, unknown> = await import(`${pathToFileURL(file).href}?changed=${mtimeMs}`);
    return source.kind === "agent" ? toAgent(source, module) : toWorkflow(source, module);
  } catch (error) {
    return { path: source.path, message: error instanceof Error ? error.message : String(error) };
  } finally {
    hooks.deregister();
  }
}

function toAgent(source: SourceFile, module: Record<string, unknown>): LoadedAgent | SourceProblem {
  const definition = module["default"];
  if (!isAgentDefinition(definition)) {
    return {
      path: source.path,
      message: "It has no agent as its default export: export default createAgent(…).",
    };
  }
  const triggers = module["triggers"];
  const webhook =
    typeof triggers === "object" && triggers !== null && "webhook" in triggers ? triggers.webhook : true;
  if (typeof webhook !== "boolean")
    return { path: source.path, message: "`triggers.webhook` must be true or false." };
  return { ...source, kind: "agent", definition, triggers: { webhook } };
}

function toWorkflow(source: SourceFile, module: Record<string, unknown>): LoadedWorkflow | SourceProblem {
  const { run } = module;
  if (typeof run !== "function") {
    return {
      path: source.path,
      message: "It exports no run function: export async function run(ctx) { … }.",
    };
  }
  return { ...source, kind: "workflow", run: run as LoadedWorkflow["run"] };
}
