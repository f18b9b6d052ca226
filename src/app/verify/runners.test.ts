import { expect, test } from "vitest";
import { campaignTest } from "../../testing/campaign.suite.ts";
import { findRunner, isOfTests } from "./runners.ts";
import { checksOf, judgeChange } from "./testing/judge-change.ts";
import { requirements, tasks, testStyles } from "./testing/test-styles.ts";

const specs = {
  ".gitignore": ".kit\nnode_modules\n",
  ".kiro/specs/cart/requirements.md": requirements,
  ".kiro/specs/cart/tasks.md": tasks,
};

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
campaignTest("a test in TypeScript that expects something is closed with Vitest", async () => {
  const change = {
    ".kiro/specs/cart/tasks.md": tasks.replace("[ ]", "[x]"),
    "src/cart.ts": `${script["src/cart.ts"]}export function discounted(prices: number[], discount: number): number {
  return total(prices) - discount;
}
`,
    "src/discount.test.ts": `import { expect, test } from "vitest";
import { discounted } from "./cart.ts";
test("takes it off (cart#1.2)", () => { expect(discounted([5, 5], 3)).toBe(7); });
`,
  };
  const prepare = testStyles.find(({ runner }) => runner === "vitest run")?.prepare;
  expect(checksOf(await judgeChange(script, change, { ...(prepare && { prepare }) }))).toBe("closed");
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
