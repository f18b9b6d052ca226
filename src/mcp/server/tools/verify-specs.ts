import { z } from "zod";
import {
  type Verdict,
  type VerdictRun,
  type VerifyRequest,
  verdictRuns,
  verdictRunTexts,
  verdictSchema,
  verifyRequestSchema,
} from "../../../protocol/verdict.ts";
import { maxAnswerLength, placeOf } from "../bounds.ts";
import type { ReadTool } from "../read-tool.ts";

/**
 * Judges the present work tree for the tool `verify_specs`; aborting `signal` ends the tests. Throws a `KitError` whose message says why
 * there is no verdict.
 */
export type VerifyCall = (
  request: VerifyRequest,
  how: { readonly signal: AbortSignal; readonly onStep: (step: VerdictRun["name"]) => void },
) => Promise<Verdict>;

/** Without its name: not every client follows a reference at the top of a schema. */
const output: z.ZodType<Verdict> = z.object(verdictSchema.shape);

/** `verify_specs`: whether a change does what its specs say, decided by running its tests. */
export function verifySpecsTool(verify: VerifyCall): ReadTool<VerifyRequest, Verdict> {
  return {
    name: "verify_specs",
    title: "Is it done?",
    description:
      "Judges the present work tree, committed or not, by running its tests in checkouts that nothing else sees: closed (done), refused (the reasons say what to mend), ask (a person has to decide), or broken (the tests could not be run). Call it before you say that a task is done. Without arguments it judges the criteria whose test or text changed, and those of the tasks that were ticked. It takes several runs of the tests.",
    input: verifyRequestSchema,
    output,
    runsTests: true,
    run: async (request, signal, report) =>
      toAnswer(
        await verify(request, {
          signal,
          onStep: (step) =>
            report?.({
              progress: verdictRuns.indexOf(step) + 1,
              total: verdictRuns.length,
              message: `Running tests: ${verdictRunTexts[step]}`,
            }),
        }),
      ),
    toText,
  };
}

/** The most changed files in an answer: a model has changed them itself. */
const mostFiles = 200;

function toAnswer(verdict: Verdict): Verdict {
  const { changed, notes, reasons } = verdict;
  const kept = withinAnswer(reasons);
  const cut = [
    ...(changed.length > mostFiles ? [`${changed.length - mostFiles} more files were changed.`] : []),
    ...(kept.length < reasons.length ? [`There are ${reasons.length - kept.length} more reasons.`] : []),
  ];
  return { ...verdict, changed: changed.slice(0, mostFiles), reasons: kept, notes: [...notes, ...cut] };
}

function withinAnswer(reasons: Verdict["reasons"]): Verdict["reasons"] {
  let length = 0;
  return reasons.filter((reason) => {
    length += JSON.stringify(reason).length;
    return length <= maxAnswerLength;
  });
}

const ends: Readonly<Record<Verdict["end"], string>> = {
  closed: "closed: the tests show that it is done.",
  refused: "refused: it is not done.",
  ask: "ask: a person has to decide.",
  broken: "broken: the tests could not be run.",
};

function toText({ end, criteria, reasons, notes }: Verdict): string {
  const ids = criteria.map(({ id }) => id).join(", ");
  return [
    ends[end],
    `Criteria: ${ids === "" ? "none" : ids}`,
    ...reasons.map(({ check, message, path, line }) =>
      path === undefined ? `- ${check}: ${message}` : `- ${check} (${placeOf(path, line)}): ${message}`,
    ),
    ...notes.map((note) => `Note: ${note}`),
  ].join("\n");
}
