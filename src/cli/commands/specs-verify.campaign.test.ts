import { rm } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { wallTest } from "../../sandboxes/host/wall/walled.suite.ts";
import { repositoryForTests } from "../../testing/repository-for-tests.ts";
import { type RunResult, runKit } from "../testing/run-kit.ts";

const repository = repositoryForTests({
  ".gitignore": ".kit\n",
  ".kiro/specs/cart/requirements.md":
    "# Requirements\n\n## Requirement 1: Totals\n\n#### Acceptance Criteria\n\n1. WHEN a discount applies THEN the system SHALL take it off.\n",
  ".kiro/specs/cart/tasks.md": "- [ ] 1. Discounts\n  - _Requirements: 1.1_\n",
  "cart.mjs": "export const total = (sum) => sum;\n",
  "cart.test.mjs":
    'import { test } from "node:test";\nimport { total } from "./cart.mjs";\ntest("adds", () => void total(1));\n',
});
beforeAll(async () => {
  await repository.init();
  await repository.commit("Begin", 1_700_000_000);
  await repository.write(
    "cart.mjs",
    "export function total(sum, discount = 0) {\n  return sum - discount;\n}\n",
  );
});

const verify = (...args: readonly string[]): Promise<RunResult> =>
  runKit(["specs", "verify", ...args], { cwd: repository.root });

test("prints why a change is refused, where, and what to do, and exits with 1", async () => {
  const { exitCode, stdout } = await verify("cart", "--task", "1");
  expect(exitCode).toBe(1);
  expect(stdout).toBe(`no-test
  No test names cart#1.1. Put this key into the title of a test, or above it.
refused: cart#1.1
`);
  const github = await verify("--criterion", "cart#1.1", "--format", "github");
  expect(github).toMatchObject({ exitCode: 1, stdout: expect.stringContaining("::error ") });
  expect(github.stdout).toContain("title=kit specs verify%3A no-test::No test names cart#1.1");
});

test("leaves what it cannot judge to a person, and names an unknown task", async () => {
  const { exitCode, stdout, stderr } = await verify();
  expect(exitCode).toBe(3);
  expect(await verify("--lenient")).toMatchObject({ exitCode: 0, stdout });
  expect(stdout).toContain("ask: no criterion. A person has to decide.");
  expect(stderr).toMatch(/1 file changed; node --test ran \d times? in [\d.]+ s\./);
  expect(await verify("cart", "--task", "7")).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('No task "7" was found in cart.'),
  });
});

wallTest(
  "isolates the tests of a folder that its user has not trusted, whatever its configuration says",
  async () => {
    await repository.write("kit.toml", '[sandbox]\nisolation = "off"\n');
    const isolated = async (env: Readonly<Record<string, string>>): Promise<unknown> =>
      JSON.parse((await runKit(["specs", "verify", "--json"], { cwd: repository.root, env })).stdout)
        .isolated;
    expect(await isolated({ KIT_TRUST: "0" })).toBe(true);
    expect(await isolated({ KIT_TRUST: "1" })).toBe(false);
    await rm(join(repository.root, "kit.toml"));
  },
);

test("closes a change whose test shows what it does, and prints the verdict as JSON", async () => {
  await repository.write(
    "cart.test.mjs",
    `import assert from "node:assert/strict";
import { test } from "node:test";
import { total } from "./cart.mjs";
test("adds", () => void total(1));
test("takes it off (cart#1.1)", () => assert.equal(total(10, 3), 7));
`,
  );
  const { exitCode, stdout } = await verify("--json");
  expect(exitCode).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    end: "closed",
    criteria: [{ id: "cart#1.1", faults: { noticed: 1 } }],
    changed: ["cart.mjs", "cart.test.mjs"],
  });
});
