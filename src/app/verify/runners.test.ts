import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { campaignTest, isCampaign, isLong } from "../../testing/campaign.suite.ts";
import { findRunner, isOfTests } from "./runners.ts";
import { checksOf, type Files, judgeChange } from "./testing/judge-change.ts";

const requirements = `# Requirements

## Requirement 1: Totals

#### Acceptance Criteria

1. WHEN a cart is totalled THEN the system SHALL add the prices.
2. WHEN a discount applies THEN the system SHALL take it off the total.
`;
const tasks = "- [ ] 1. Discounts\n  - _Requirements: 1.2_\n";
const specs = {
  ".gitignore": ".kit\nnode_modules\n",
  ".kiro/specs/cart/requirements.md": requirements,
  ".kiro/specs/cart/tasks.md": tasks,
};
const done = { ".kiro/specs/cart/tasks.md": tasks.replace("[ ]", "[x]") };

const hasPytest = ((): boolean => {
  try {
    execFileSync("python3", ["-m", "pytest", "--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

const python = {
  ...specs,
  "cart.py": "def total(prices):\n    return sum(prices)\n",
  "test_cart.py":
    'from cart import total\n\n\ndef test_adds():\n    """cart#1.1"""\n    assert total([1, 2]) == 3\n',
};
const pythonDone = {
  ...done,
  "cart.py": `${python["cart.py"]}\n\ndef discounted(prices, discount):\n    return total(prices) - discount\n`,
};
const pythonTest = (body: string, mark = ""): Files => ({
  ...pythonDone,
  "test_discount.py": `import pytest\nfrom cart import discounted\n\n\n${mark}def test_discount():\n    """cart#1.2"""\n    ${body}\n`,
});

const script = {
  ...specs,
  "package.json": '{ "type": "module", "devDependencies": { "vitest": "*" } }\n',
  "src/cart.ts":
    "export const total = (prices: number[]): number => prices.reduce((sum, price) => sum + price, 0);\n",
  "src/cart.test.ts": `import { expect, test } from "vitest";
import { total } from "./cart.ts";
test("adds (cart#1.1)", () => expect(total([1, 2])).toBe(3));
`,
};
const scriptTest = (text: string): Files => ({
  ...done,
  "src/cart.ts": `${script["src/cart.ts"]}export function discounted(prices: number[], discount: number): number {
  return total(prices) - discount;
}
`,
  "src/discount.test.ts": `import { expect, test } from "vitest";\nimport { discounted } from "./cart.ts";\n${text}\n`,
});
/** Installs kit's own Vitest, as a link. */
const prepare = async (root: string): Promise<void> => {
  mkdirSync(join(root, "node_modules/.bin"), { recursive: true });
  const installed = join(import.meta.dirname, "../../../node_modules");
  symlinkSync(join(installed, "vitest"), join(root, "node_modules/vitest"));
  symlinkSync(join(installed, "vitest/vitest.mjs"), join(root, "node_modules/.bin/vitest"));
};

/** A campaign tries the first two of each runner: the cheats play these ways, too. */
const most = isLong ? Number.POSITIVE_INFINITY : 2;

const pythonChanges: readonly [expected: string, change: Files][] = [
  ["closed", pythonTest("assert discounted([5, 5], 3) == 7")],
  ["refused asserts-nothing", pythonTest("assert callable(discounted)")],
  ["refused not-run", pythonTest("assert discounted([5, 5], 3) == 7", "@pytest.mark.skip\n")],
  [
    "refused passes-without",
    { ...pythonDone, "test_cart.py": python["test_cart.py"].replace("cart#1.1", "cart#1.1, cart#1.2") },
  ],
  [
    "refused regression",
    {
      ...pythonTest("assert discounted([5, 5], 3) == 7"),
      "cart.py": `import os\nos._exit(0)\n${pythonDone["cart.py"]}`,
    },
  ],
];
test.runIf(isCampaign && hasPytest).each(pythonChanges.slice(0, most))(
  "pytest: %s",
  async (expected, change) => {
    expect(checksOf(await judgeChange(python, change))).toBe(expected);
  },
);

const scriptChanges: readonly [expected: string, change: Files][] = [
  [
    "closed",
    scriptTest('test("takes it off (cart#1.2)", () => { expect(discounted([5, 5], 3)).toBe(7); });'),
  ],
  [
    "refused asserts-nothing",
    scriptTest('test("takes it off (cart#1.2)", () => { expect(discounted).toBeDefined(); });'),
  ],
  [
    "refused not-run",
    scriptTest('test.skip("takes it off (cart#1.2)", () => { expect(discounted([5, 5], 3)).toBe(7); });'),
  ],
  [
    "refused regression",
    {
      ...scriptTest('test("takes it off (cart#1.2)", () => { expect(discounted([5, 5], 3)).toBe(7); });'),
      "vitest.config.ts": 'export default { test: { include: ["nothing.test.ts"] } };\n',
    },
  ],
];
campaignTest.each(scriptChanges.slice(0, most))("Vitest: %s", async (expected, change) => {
  expect(checksOf(await judgeChange(script, change, { prepare }))).toBe(expected);
});

test("a runner is found by the manifest, else by the tests", () => {
  const found = (manifest: string | undefined, ...files: readonly string[]): string =>
    findRunner({ configured: undefined, manifest, files }).label;
  expect(found('{"devDependencies":{"vitest":"^5"}}', "a.test.ts")).toBe("vitest run");
  expect(found('{"dependencies":{"jest":"^30"}}')).toBe("jest");
  expect(found("{", "src/a.test.ts")).toBe("node --test");
  expect(found(undefined, "tests/test_a.py", "a.py")).toBe("python3 -m pytest");
  expect(() => found(undefined, "a.go")).toThrow("kit does not know how to run the tests of this project.");
  const topManifest = '{"devDependencies":{"vitest":"^5"}}';
  const below = { configured: undefined, manifest: undefined, topManifest, files: ["a.test.ts"] };
  expect(findRunner(below).label).toBe("vitest run");
  expect(findRunner({ ...below, hasNodeTests: true }).label).toBe("node --test");
  const configured = findRunner({
    configured: "go test {files} -o {report}",
    manifest: undefined,
    files: [],
  });
  expect(configured.label).toBe("go test -o {report}");
  expect(configured.command("/o/r 1", ["a'b.go", "-x.go"])).toEqual([
    ...["/bin/sh", "-c", "--", `go test "$@" -o '/o/r 1'`],
    ...["sh", "a'b.go", "./-x.go"],
  ]);
  expect(() => findRunner({ configured: "go test", manifest: undefined, files: [] })).toThrow(
    "where its runner writes the report",
  );
});

test.each([
  ["src/cart.test.ts", true],
  ["tests/helpers/build.ts", true],
  ["src/__snapshots__/cart.test.ts.snap", true],
  ["vitest.config.ts", true],
  ["tests/conftest.py", true],
  ["src/cart.ts", false],
  ["package.json", false],
  ["src/testimony.ts", false],
])("whether %s belongs to the tests: %s", (path, expected) => {
  expect(isOfTests(path)).toBe(expected);
});
