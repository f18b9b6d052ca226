import { afterAll, expect, test } from "vitest";
import { guidelinesForTool } from "../../mcp/server/tools/guidelines-for.ts";
import { specImpactTool } from "../../mcp/server/tools/spec-impact.ts";
import { specSearchTool } from "../../mcp/server/tools/spec-search.ts";
import { openProject } from "../../project/open-project.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { quoteImpact, quoteRules, quoteSearch } from "./quote-lookup.ts";

const repository = await createTemporaryRepository({
  "AGENTS.md": "## Commits\n\nOne idea per commit.\n\n## Money\n\n- Cents only.\n- Round once.\n",
  "CLAUDE.md": "## Commits\n\nOne idea per commit.\n",
  "src/pay/CLAUDE.md": "## Payments\n\nNever log a payment.\n",
  ".cursor/rules/release.mdc": "---\nalwaysApply: false\n---\n\n# Release\n\nTag it.\n",
  "src/pay/charge.ts": "export const charge = 1;\n",
  ".kiro/specs/pay/design.md": "# Design\n\n## Charging\n\nThe code is `src/pay/charge.ts`.\n",
});
const project = await openProject({ root: repository.root, config: {} });
afterAll(async () => {
  await project.close();
  await repository[Symbol.asyncDispose]();
});
const { signal } = new AbortController();

// The texts are those of the real tools: if one of them writes another form, these tests fail.
test("rules for the file come first, the same rule of two tools once, and those on request by name", async () => {
  const tool = guidelinesForTool(project);
  const answer = quoteRules(
    "src/pay/charge.ts",
    tool.toText(await tool.run({ file: "src/pay/charge.ts" }, signal)),
  );
  expect(answer).toBe(
    `**3 rules apply to src/pay/charge.ts.**

- **Payments** (src/pay/CLAUDE.md:1): Never log a payment.
- **Commits** (AGENTS.md:1, CLAUDE.md:1): One idea per commit.
- **Money** (AGENTS.md:5):
  - Cents only.
  - Round once.

1 more on request: Release (.cursor/rules/release.mdc:1).`,
  );
});

test("affected specs and found specs are named by title and place, without ids and scores", async () => {
  const impact = specImpactTool(project);
  const affected = quoteImpact(
    "src/pay/charge.ts",
    impact.toText(await impact.run({ files: ["src/pay/charge.ts"] }, signal)),
  );
  expect(affected).toBe(
    "**A change of src/pay/charge.ts affects 1 spec.**\n\n- Charging (.kiro/specs/pay/design.md:3)",
  );
  const search = specSearchTool(project.specs);
  const found = quoteSearch("charging", search.toText(await search.run({ q: "charging" }, signal)));
  expect(found).toMatch(
    /^\*\*1 spec speaks of "charging"\.\*\*\n\n- \*\*Charging\*\* \(\.kiro\/specs\/pay\/design\.md:3\): The code/,
  );
});

test("long answers end with how many more there are, and another form of result is left to be quoted", () => {
  const rules = Array.from(
    { length: 20 },
    (_, n) => `## Rule ${n}\n(AGENTS.md:${n}; always; id abc)\n\n${`word ${n} `.repeat(200)}`,
  );
  const answer = quoteRules("a.ts", `20 guidelines apply to a.ts.\n\n${rules.join("\n\n")}`) ?? "";
  expect(answer).toContain("… and 8 more: kit guidelines explain a.ts");
  expect(answer.length).toBeLessThan(5_000);
  expect([
    quoteRules("a.ts", "1 rule."),
    quoteImpact("a.ts", "- A"),
    quoteSearch("a", "- A (a.md:1)"),
  ]).toEqual([undefined, undefined, undefined]);
});
