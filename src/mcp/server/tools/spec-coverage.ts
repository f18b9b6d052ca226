import { z } from "zod";
import { specCoverage } from "../../../project/features/coverage.ts";
import type { Project } from "../../../project/project.ts";
import type { CriterionCoverage } from "../../../protocol/coverage.ts";
import { type Infer, textField } from "../../../protocol/fields.ts";
import { excerptOf, nextPageMark, pageOf, placeOf } from "../bounds.ts";
import type { ReadTool } from "../read-tool.ts";
import { nextCursor } from "./tool-fields.ts";

const input = z.strictObject({
  feature: textField(200).exactOptional().meta({ description: "Only this feature, such as checkout." }),
  show: z.enum(["uncovered", "all"]).exactOptional().meta({ description: "Default: uncovered." }),
  cursor: nextCursor.exactOptional(),
});
type Input = Infer<typeof input>;

const output = z.object({
  totals: z.object({ criteria: z.int(), covered: z.int(), suggested: z.int(), uncovered: z.int() }),
  total: z.int().meta({ description: "Number of criteria in the whole list." }),
  criteria: z.array(
    z.object({
      id: z.string().meta({ description: "The key to put into a test." }),
      path: z.string(),
      line: z.int(),
      text: z.string(),
      tests: z.array(z.string()),
      suggestions: z.array(z.string()).meta({ description: "Tests with similar words; they do not count." }),
    }),
  ),
  next_cursor: z.string().exactOptional(),
});
type Output = Infer<typeof output>;
type Criterion = Output["criteria"][number];

/** `spec_coverage`: acceptance criteria with and without a test that names them. */
export function specCoverageTool(project: Project): ReadTool<Input, Output> {
  return {
    name: "spec_coverage",
    title: "Criteria without a test",
    description:
      "Which acceptance criteria no test names (or, with show = all, every criterion with its tests). A test covers a criterion when it names it by path, by requirement number, or by key such as checkout#1.2: put that key into the test you write.",
    input,
    output,
    run: async ({ feature, show = "uncovered", cursor }, signal) => {
      const features = feature === undefined ? {} : { features: [feature] };
      const report = await specCoverage(project, { signal, ...features });
      const listed = report.criteria.filter(({ tests }) => show === "all" || tests.length === 0);
      const { criteria, covered, suggested, uncovered } = report.totals;
      const { items, ...rest } = pageOf(listed, { cursor, limit: 50, toItem: toCriterion });
      return { totals: { criteria, covered, suggested, uncovered }, criteria: items, ...rest };
    },
    toText,
  };
}

function toCriterion({ id, path, line, text, tests, suggestions }: CriterionCoverage): Criterion {
  return {
    id,
    path,
    line,
    text: excerptOf(text, 300),
    tests: tests.slice(0, 10).map((test) => placeOf(test.path, test.line)),
    suggestions: suggestions.map((test) => placeOf(test.path, test.line)),
  };
}

function toText({ totals, criteria, next_cursor }: Output): string {
  const lines = criteria.map(({ id, path, line, text, tests, suggestions }) => {
    const tested = tests.length > 0 ? `tests: ${tests.join(", ")}` : "no test";
    const similar = suggestions.length > 0 ? `; similar: ${suggestions.join(", ")}` : "";
    return `- ${id} (${placeOf(path, line)}; ${tested}${similar})\n  ${text}`;
  });
  const head = `${totals.covered} of ${totals.criteria} acceptance criteria have a test that names them.`;
  return `${[head, ...lines].join("\n")}${nextPageMark(next_cursor)}`;
}
