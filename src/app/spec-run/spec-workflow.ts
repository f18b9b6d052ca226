import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import { specRunBodySchema, specRunWorkflow } from "../../protocol/spec-run.ts";
import { findWall } from "../../sandboxes/host/wall/find-wall.ts";
import { defineWorkflow } from "../../workflows/define-workflow.ts";
import { toIsolation } from "../runtime/open-sandbox.ts";
import type { BuiltInParts, BuiltInWorkflow } from "../service/built-in-workflow.ts";
import { trustsCode } from "../trust/trust.ts";
import { runSpec, type SpecRunParts } from "./spec-run.ts";
import { TaskBranch } from "./task-branch.ts";

/** `kit.spec`: the open tasks of a spec as a durable run. */
export function specWorkflow({
  project,
  config,
  sources,
  engine,
  isTerminal,
}: BuiltInParts): BuiltInWorkflow {
  const configured = toIsolation(config.sandbox);
  // A person at the terminal can answer for the code of a folder; other callers cannot, whatever the configuration says.
  const mayBeOpen = isTerminal && trustsCode(project.root, process.env);
  const parts: SpecRunParts = {
    project,
    config: { specs: config.specs, guidelines: config.guidelines, lint: config.lint },
    isolation: mayBeOpen ? configured : { ...configured, isolation: "required" },
    agent: (name) => sources.definition(name),
    async otherRun(feature, runId) {
      const { items } = await engine.listRuns({ workflow: specRunWorkflow, limit: 1_000 });
      return items
        .filter(
          ({ ended_at, payload }) =>
            ended_at === undefined && isRecord(payload) && payload.feature === feature,
        )
        .map(({ run_id }) => run_id)
        .find((id) => id < runId);
    },
  };
  return {
    async admit({ feature, agent, tests_by }) {
      if (project.readOnly) throw forbidden("The project is read-only here, and a task ends with a commit.");
      if (engine.capabilities.distributed) {
        throw new KitError({
          code: "unavailable",
          message:
            "The tasks of a spec are done in work trees of one machine, and this engine shares its work among several.",
          hint: "Run 'kit run --spec' on a machine with an engine of its own: [engine] without url.",
        });
      }
      if (!mayBeOpen) {
        const { wall, ...found } = await findWall();
        if (wall === "none" && "reason" in found)
          throw forbidden(
            `The tests of a task run in isolation, unless a person at the terminal trusts the folder. ${found.reason}`,
          );
      }
      for (const name of [agent, tests_by]) if (name !== undefined) sources.checkAgent(name);
      const branch = await TaskBranch.open(project.root, feature);
      await branch.peek();
    },
    definition: defineWorkflow({
      payload: specRunBodySchema,
      run: (ctx) => runSpec(parts, ctx),
    }),
  };
}

function forbidden(message: string): KitError {
  return new KitError({
    code: "forbidden",
    message,
    hint: "'kit trust', then 'kit run --spec' at a terminal in the project.",
  });
}
