import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { specCoverage } from "../../project/features/coverage.ts";
import { openProject } from "../../project/open-project.ts";
import { campaignTest } from "../../testing/campaign.suite.ts";
import { requirementsFile } from "../../testing/requirements-file.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { checksOf, type Files, judgeChange } from "./testing/judge-change.ts";
import { verifySpecs } from "./verify-specs.ts";

const requirements = requirementsFile("Totals", [
  "WHEN a cart is totalled THEN the system SHALL add the prices times their counts.",
  "WHEN the cart is empty THEN the system SHALL return zero.",
  "WHEN a discount applies THEN the system SHALL take it off the total.",
]);
const tasks = `# Tasks

- [x] 1. Totals
  - _Requirements: 1.1, 1.2_
- [ ] 2. Discounts
  - _Requirements: 1.3_
- [ ] 3. Tidy up
`;
const cart = `export function total(lines) {
  let sum = 0;
  for (const { price, count } of lines) sum += price * count;
  return sum;
}
`;
const cartTest = `import assert from "node:assert/strict";
import { test } from "node:test";
import { total } from "./cart.mjs";

test("adds prices times counts (cart#1.1)", () => {
  assert.equal(total([{ price: 2, count: 3 }, { price: 1, count: 1 }]), 7);
});
test("an empty cart is zero (cart#1.2)", () => {
  assert.equal(total([]), 0);
});
`;
const discounted = `export function total(lines, discount = 0) {
  let sum = 0;
  for (const { price, count } of lines) sum += price * count;
  return sum - discount;
}
`;
const discountTest = `test("takes a discount off (cart#1.3)", () => {
  assert.equal(total([{ price: 5, count: 2 }], 3), 7);
});
`;
const ticked = tasks.replace("- [ ] 2", "- [x] 2");

const base = {
  ".gitignore": ".kit\n",
  ".kiro/specs/cart/requirements.md": requirements,
  ".kiro/specs/cart/tasks.md": tasks,
  "src/cart.mjs": cart,
  "src/cart.test.mjs": cartTest,
};

const honest = {
  "src/cart.mjs": discounted,
  "src/cart.test.mjs": cartTest + discountTest,
  ".kiro/specs/cart/tasks.md": ticked,
};

test("honest work is closed, and the verdict says what was run", async () => {
  const verdict = await judgeChange(base, honest);
  expect(verdict).toMatchObject({
    end: "closed",
    reasons: [],
    criteria: [
      {
        id: "cart#1.3",
        tests: [{ path: "src/cart.test.mjs", line: 11, titles: ["takes a discount off (cart#1.3)"] }],
        faults: { noticed: 1 },
      },
    ],
    changed: [".kiro/specs/cart/tasks.md", "src/cart.mjs", "src/cart.test.mjs"],
    runner: "node --test",
  });
  expect(verdict.runs.map(({ name }) => name)).toEqual([
    "base",
    "head",
    "old_tests",
    "again",
    "old_code",
    "respaced",
    "faults",
  ]);
});

/** `testing/cheats.ts` has the others. */
interface Cheat {
  readonly name: string;
  readonly expected: string;
  readonly change: Files;
  readonly before?: Readonly<Record<string, string>>;
}
const cheats: readonly Cheat[] = [
  {
    name: "ticks the box, and does nothing",
    expected: "refused no-change",
    change: { ".kiro/specs/cart/tasks.md": ticked },
    before: { "src/cart.test.mjs": cartTest + discountTest },
  },
  {
    name: "writes a test that is true anyway",
    expected: "refused passes-without",
    change: {
      ...honest,
      "src/cart.test.mjs": `${cartTest}test("takes a discount off (cart#1.3)", () => {});\n`,
    },
  },
  {
    name: "breaks another function",
    expected: "refused regression failing",
    change: {
      ...honest,
      "src/cart.mjs": discounted.replace("price * count", "price"),
      "src/other.test.mjs": "",
    },
    before: { "src/other.test.mjs": "", "src/more.test.mjs": cartTest },
  },
];
test.each(cheats)("a change that $name is refused", async ({ expected, change, before }) => {
  expect(checksOf(await judgeChange({ ...base, ...before }, change))).toBe(expected);
});

campaignTest("a change that kit cannot judge is a question, and not a refusal", async () => {
  const onlyTests = await judgeChange(
    { ...base, "src/cart.mjs": discounted },
    { "src/cart.test.mjs": cartTest + discountTest },
  );
  expect(checksOf(onlyTests)).toBe("ask passes-without");
  const tidied = await judgeChange(base, { "src/cart.mjs": `// Totals.\n${cart}` });
  expect(checksOf(tidied)).toBe("ask no-criteria");
  const settings = { without_criteria: "suite" } as const;
  expect(checksOf(await judgeChange(base, { "src/cart.mjs": `// Totals.\n${cart}` }, { settings }))).toBe(
    "closed",
  );
  expect(await judgeChange(base, {})).toMatchObject({
    end: "closed",
    notes: ["Nothing differs from the base."],
  });
  expect(checksOf(await judgeChange(base, {}, { criteria: ["cart#1.1"] }))).toBe("refused no-change");
  const documented = await judgeChange(base, { "README.md": "# Cart\n" });
  expect(checksOf(documented)).toBe("ask no-change");
});

test("specs that are written before the work are no claim, and need neither a test nor a runner", async () => {
  const written = {
    ".kiro/specs/cart/requirements.md": `${requirements}4. WHEN a cart is shared THEN the system SHALL show it to both.\n`,
  };
  expect(checksOf(await judgeChange(base, written))).toBe("ask no-change");
  const { "src/cart.test.mjs": _, ...untested } = base;
  expect(await judgeChange(untested, written)).toMatchObject({ end: "ask", runner: "", runs: [] });
});

campaignTest("a criterion that is written beside other work is a question", async () => {
  const change = {
    ".kiro/specs/cart/requirements.md": `${requirements}4. WHEN a cart is shared THEN the system SHALL show it to both.\n`,
    "src/cart.mjs": `// Totals.\n${cart}`,
  };
  expect(checksOf(await judgeChange(base, change))).toBe("ask no-test");
});

campaignTest("an old test that had to change is a question, and names what it said", async () => {
  const rounded = cart.replace("return sum;", "return Math.round(sum);");
  const verdict = await judgeChange(
    {
      ...base,
      "src/cart.mjs": rounded,
      "src/cart.test.mjs": `${cartTest}test("rounds", () => assert.equal(total([{ price: 1.4, count: 1 }]), 1));\n`,
    },
    {
      ...honest,
      "src/cart.test.mjs": `${cartTest}test("rounds", () => assert.equal(total([{ price: 1.4, count: 1 }]), 1.4));\n${discountTest}`,
    },
  );
  expect(checksOf(verdict)).toBe("ask test-changed");
  expect(verdict.reasons[0]).toMatchObject({
    path: "src/cart.test.mjs",
    message: expect.stringContaining('"rounds"'),
  });
});

campaignTest("a removed test is a question, a renamed one a note", async () => {
  const rounds = 'test("rounds", () => assert.equal(total([{ price: 1.4, count: 1 }]), 1));\n';
  const before = {
    ...base,
    "src/cart.mjs": cart.replace("return sum;", "return Math.round(sum);"),
    "src/cart.test.mjs": cartTest + rounds,
  };
  expect(checksOf(await judgeChange(before, honest))).toBe("ask test-removed");
  const renamed = {
    ...honest,
    "src/cart.test.mjs": cartTest.replace("an empty cart is zero", "nothing is zero") + discountTest,
  };
  const verdict = await judgeChange(base, renamed);
  expect(verdict.reasons.filter(({ criterion }) => criterion !== "cart#1.2")).toEqual([]);
  expect(verdict.notes).toEqual([expect.stringContaining("in its old words it passes")]);
});

test("a task, a criterion, a feature and a revision that are not there are named", async () => {
  const judged = (options: Parameters<typeof judgeChange>[2]) => judgeChange(base, honest, options);
  await expect(judged({ feature: "carts" })).rejects.toThrow('No feature "carts"');
  await expect(judged({ feature: "cart", task: "9" })).rejects.toThrow('No task "9" was found in cart');
  await expect(judged({ task: "2" })).rejects.toMatchObject({ hint: expect.stringContaining("--task 3") });
  await expect(judged({ criteria: ["cart#9.9"] })).rejects.toThrow('No spec has the criterion "cart#9.9"');
  for (const since of ["nowhere", "--output=/tmp/x", ""])
    await expect(judged({ since })).rejects.toMatchObject({ code: "invalid_request" });
});

test("outside of Git, without a runner and without a running test, a sentence says what is missing", async () => {
  await using folder = await createTemporaryRepository(base);
  const project = await openProject({ root: folder.root, indexFile: ":memory:" });
  await expect(verifySpecs(project)).rejects.toThrow("This is not a work tree of Git");
  await folder.init();
  await expect(verifySpecs(project)).rejects.toThrow("The repository has no commit to compare with.");
  await project.close();
  const { "src/cart.test.mjs": _, ...untested } = base;
  await expect(judgeChange(untested, { "src/cart.mjs": discounted })).rejects.toThrow(
    "kit does not know how to run",
  );
  const settings = { test: "echo out of order {report}" };
  const verdict = await judgeChange(base, honest, { settings });
  expect(checksOf(verdict)).toBe("broken broken");
  expect(verdict.reasons[0]?.message).toContain("out of order work/out/report");
  expect(verdict.reasons[0]?.message).not.toContain(tmpdir());
});

test("the work tree, the index and the objects of the repository stay as they are", async () => {
  await using repository = await createTemporaryRepository(base);
  await repository.init();
  await repository.commit("Begin", 1_700_000_000);
  await repository.write("src/cart.mjs", discounted);
  const state = async () => [
    await repository.git("status", "--porcelain"),
    await repository.git("count-objects", "-v"),
    readFileSync(join(repository.root, ".git/index")).toString("base64"),
  ];
  const before = await state();
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  await verifySpecs(project);
  await project.close();
  expect(await state()).toEqual(before);
});

campaignTest(
  "a project below the top of its repository is judged, and its results are observed ones",
  async () => {
    const below = Object.fromEntries(Object.entries(base).map(([path, text]) => [`shop/${path}`, text]));
    await using repository = await createTemporaryRepository({ ...below, "other.mjs": "" });
    await repository.init();
    const commit = await repository.commit("Begin", 1_700_000_000);
    for (const [path, text] of Object.entries(honest)) await repository.write(`shop/${path}`, text);
    const project = await openProject({ root: join(repository.root, "shop"), indexFile: ":memory:" });
    const verdict = await verifySpecs(project, { feature: "cart", task: "2", since: "HEAD" });
    expect(checksOf(verdict)).toBe("closed");
    const { criteria } = await specCoverage(project);
    await project.close();
    expect(criteria.map(({ state }) => state)).toEqual(["passing", "passing", "passing"]);
    expect(criteria[2]?.tests[0]?.result).toMatchObject({ source: "observed", commit, tree: verdict.tree });
  },
);
