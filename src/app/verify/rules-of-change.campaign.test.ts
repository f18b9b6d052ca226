import { expect, test } from "vitest";
import type { RuleCheck } from "../../project/project-config.ts";
import type { Verdict } from "../../protocol/verdict.ts";
import { campaignTest } from "../../testing/campaign.suite.ts";
import { parseTomlConfig } from "../config/load-config.ts";
import { checksOf, type Files, judgeChange } from "./testing/judge-change.ts";

const script = (pattern: string): string => `import { readFileSync } from "node:fs";
for (const path of process.argv.slice(2))
  for (const [index, line] of readFileSync(path, "utf8").split("\\n").entries())
    if (${pattern}.test(line)) {
      console.log(path + ":" + (index + 1) + ": no whole cents");
      process.exitCode = 1;
    }
`;
const toml = (...runs: readonly string[]): string =>
  runs
    .map((run) => `[[guidelines.check]]\nrule = "AGENTS.md#money"\nfiles = "src/**"\nrun = "${run}"\n`)
    .join("\n");
const run = "node tools/whole-cents.mjs {files}";

const base = {
  ".gitignore": ".kit\n",
  "AGENTS.md": "# Shop\n\n## Money\n\nWhole cents.\n",
  "kit.toml": toml(run),
  "tools/whole-cents.mjs": script("/\\d\\.\\d/"),
  "src/cart.mjs": "export const price = 100;\n",
  "src/cart.test.mjs":
    'import assert from "node:assert/strict";\nimport { test } from "node:test";\nimport { price } from "./cart.mjs";\ntest("has a price", () => assert.ok(price > 0));\n',
};
const broken = { "src/cart.mjs": "// The price\nexport const price = 9.5;\n" };

/** Judges with the configuration of the work tree, as the command line does. */
async function judge(change: Files, before: Readonly<Record<string, string>> = base): Promise<Verdict> {
  const text = change["kit.toml"] === undefined ? before["kit.toml"] : change["kit.toml"];
  const { guidelines } = await parseTomlConfig(text ?? "", "kit.toml");
  const checks: readonly RuleCheck[] | undefined = guidelines?.check;
  return await judgeChange(before, change, { settings: { without_criteria: "suite" }, checks });
}

test("a change that breaks a rule is refused with the rule, a sentence and the place", async () => {
  const verdict = await judge(broken);
  expect(verdict).toMatchObject({
    end: "refused",
    reasons: [
      {
        check: "rule-broken",
        rule: "AGENTS.md#money",
        message: 'AGENTS.md#money ("Money") is broken in src/cart.mjs:2: no whole cents',
        path: "src/cart.mjs",
        line: 2,
      },
    ],
  });
});

test("a change that keeps a rule is closed", async () => {
  expect(checksOf(await judge({ "src/cart.mjs": "export const price = 200;\n" }))).toBe("closed");
});

const weakened: readonly (readonly [string, string, Files])[] = [
  ["edits the program of its check", "ask rule-unclear", { "tools/whole-cents.mjs": script("/never/") }],
  ["removes the program of its check", "refused rule-unclear rule-broken", { "tools/whole-cents.mjs": null }],
  ["takes the check out of kit.toml", "refused rule-unclear rule-broken", { "kit.toml": "" }],
  ["removes kit.toml", "refused rule-unclear rule-broken", { "kit.toml": null }],
  [
    "replaces the check by one that is always true",
    "refused rule-unclear rule-broken",
    { "kit.toml": toml("true") },
  ],
  ["removes the rule", "ask rule-unclear", { "AGENTS.md": "# Shop\n\n## Tests\n\nBeside.\n" }],
  ["turns the rule around", "ask rule-unclear", { "AGENTS.md": "# Shop\n\n## Money\n\nDecimals.\n" }],
  [
    "adds settings that the program does not read",
    "refused rule-broken",
    { "package.json": '{ "type": "module" }\n' },
  ],
];

const [first, ...others] = weakened.map(([how, expected, change]) => ({ how, expected, change }));
type Weakened = NonNullable<typeof first>;
const isNotClosed = async ({ expected, change }: Weakened): Promise<void> => {
  expect(checksOf(await judge({ ...broken, ...change }))).toBe(expected);
};
test.each(first === undefined ? [] : [first])(
  "a change that breaks a rule and $how is not closed",
  isNotClosed,
);
campaignTest.each(others)("a change that breaks a rule and $how is not closed, either", isNotClosed);

campaignTest(
  "what a program of the base reads comes from the base, too, and a change beside it is a question",
  async () => {
    const before = {
      ...base,
      "tools/whole-cents.mjs": `import { pattern } from "./pattern.mjs";\n${script("pattern")}`,
      "tools/pattern.mjs": "export const pattern = /\\d\\.\\d/;\n",
    };
    const change = { "tools/pattern.mjs": "export const pattern = /never/;\n" };
    expect(checksOf(await judge({ ...broken, ...change }, before))).toBe("ask rule-unclear");
    const verdict = await judge({ "src/cart.mjs": "export const price = 200;\n", ...change }, before);
    expect(verdict).toMatchObject({
      end: "ask",
      reasons: [{ message: expect.stringMatching(/^tools\/pattern\.mjs was changed, and it checks/) }],
    });
  },
);

campaignTest(
  "settings among the checked files, which would switch the check off, are those of the base",
  async () => {
    const settings = "src/cents.config.mjs";
    const before = {
      ...base,
      "tools/whole-cents.mjs": `import { pattern } from "../${settings}";\n${script("pattern")}`,
      [settings]: "export const pattern = /\\d\\.\\d/;\n",
    };
    const off = { [settings]: "export const pattern = /^never/;\n" };
    expect(checksOf(await judge({ ...broken, ...off }, before))).toBe("ask rule-unclear");
    expect(checksOf(await judge({ [settings]: `// Patterns\n${before[settings]}` }, before))).toBe("closed");
    const wrong = { [settings]: `${before[settings]}export const price = 9.5;\n` };
    expect(checksOf(await judge(wrong, before))).toBe("ask rule-unclear");
  },
);

campaignTest(
  "a check that the change brings is a question, and another change of kit.toml is none",
  async () => {
    const { "kit.toml": _, ...before } = base;
    const change = { "src/cart.mjs": "export const price = 200;\n" };
    expect(await judge({ ...change, "kit.toml": toml(run) }, before)).toMatchObject({
      end: "ask",
      reasons: [{ check: "rule-unclear", path: "kit.toml" }],
    });
    const linted = { "kit.toml": `[lint]\nignore = ["docs"]\n\n${toml(run)}` };
    expect(checksOf(await judge({ ...change, ...linted }))).toBe("closed");
    expect(checksOf(await judge({ ...broken, ...linted }))).toBe("refused rule-broken");
  },
);

campaignTest("a check that cannot run is a question, and so is a changed configuration in code", async () => {
  const change = { "src/cart.mjs": "export const price = 200;\n" };
  const unknown = await judge(change, { ...base, "kit.toml": toml("no-such-program {files}") });
  expect(unknown).toMatchObject({ end: "ask", reasons: [{ check: "rule-unclear" }] });
  expect(unknown.reasons[0]?.message).toMatch(/^The check of AGENTS\.md#money \("Money"\) could not run\./);
  const code = {
    ...base,
    "kit.toml": "",
    "kit.config.mjs": "export default { guidelines: { check: [] } };\n",
  };
  expect(await judge({ ...change, "kit.config.mjs": "export default {};\n" }, code)).toMatchObject({
    end: "ask",
    reasons: [{ check: "rule-unclear", path: "kit.config.mjs" }],
  });
});
