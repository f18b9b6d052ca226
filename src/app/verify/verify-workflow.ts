import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type Verdict, verdictRunTexts, verdictSchema, verifyRequestSchema } from "../../protocol/verdict.ts";
import { defineWorkflow } from "../../workflows/define-workflow.ts";
import type { BuiltInParts, BuiltInWorkflow } from "../service/built-in-workflow.ts";
import { createRemoteJudge } from "./remote-judge.ts";

const result: StandardSchemaV1<Verdict> = verdictSchema;

/**
 * `kit.verify`: a verdict as a durable run. The whole judgment is one step: after a crash the run judges again, and its verdict is about the
 * work tree as it is then.
 */
export function verifyWorkflow({ project, config }: BuiltInParts): BuiltInWorkflow {
  const judge = createRemoteJudge(project, config);
  return {
    admit: judge.admit,
    definition: defineWorkflow({
      payload: verifyRequestSchema,
      result,
      run: async ({ payload, step, log }) =>
        await step("judge", ({ signal }) =>
          judge.judge(payload, {
            signal,
            onStep: (name) => log.info(`Running tests: ${verdictRunTexts[name]}`, { verify: { step: name } }),
          }),
        ),
    }),
  };
}
