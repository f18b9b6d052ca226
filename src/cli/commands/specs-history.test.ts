import { beforeAll, expect, test } from "vitest";
import { repositoryForTests } from "../../testing/repository-for-tests.ts";
import { type RunResult, runKit } from "../testing/run-kit.ts";

let commits: readonly string[] = [];

const kit = (...args: readonly string[]): Promise<RunResult> =>
  runKit(["specs", ...args], { cwd: repository.root });
const report = (...failed: readonly string[]): string =>
  `<testsuite>${["adds", "takes off"]
    .map(
      (name) =>
        `<testcase file="cart.test.js" name="${name}">${failed.includes(name) ? "<failure/>" : ""}</testcase>`,
    )
    .join("")}</testsuite>`;

const repository = repositoryForTests({
  ".gitignore": ".kit\njunit.xml\n",
  ".kiro/specs/cart/requirements.md":
    "# Requirements\n\n## Requirement 1: Totals\n\n#### Acceptance Criteria\n\n1. THE cart SHALL add.\n2. THE cart SHALL take off discounts.\n",
  "cart.test.js": '// cart#1.1\ntest("adds", () => {});\n// cart#1.2\ntest("takes off", () => {});\n',
});
beforeAll(async () => {
  await repository.init();
  const record = async (at: number, ...failed: readonly string[]): Promise<string> => {
    await repository.write("cart.js", `${at}\n`);
    const commit = await repository.commit(`Change ${at}`, 1_700_000_000 + at);
    for (const failing of [failed, []]) {
      await repository.write("junit.xml", report(...failing));
      expect(await kit("results", "junit.xml")).toMatchObject({ exitCode: 0 });
    }
    return commit;
  };
  commits = [await record(1), await record(2, "adds")];
  await repository.write("cart.js", "3\n");
  commits = [...commits, await repository.commit("Change 3", 1_700_000_003)];
  await repository.write("junit.xml", report("takes off"));
  await kit("results", "junit.xml");
});

test("prints the results of criteria over time on a line each, and every entry as JSON", async () => {
  const today = new Date().toISOString().slice(0, 10);
  const [one = "", two = "", three = ""] = commits.map((commit) => commit.slice(0, 7));
  expect(await kit("coverage", "--history", "cart#1.1,cart#1.2")).toMatchObject({
    exitCode: 0,
    stdout: `cart#1.1  ●○●  passing since ${one} (${today}), failed once at ${two} (flaky: same tree passed)
cart#1.2  ●○  failing since ${three} (${today})
`,
  });
  const { stdout } = await kit("coverage", "--history", "cart#1.1", "--json");
  expect(JSON.parse(stdout).history).toMatchObject([
    { criterion: "cart#1.1", state: "passing", commit: commits[1], flaky: true },
    { state: "failing", passed: 0, failed: 1, commit: commits[1], flaky: true },
    { state: "passing", commit: commits[0], source: "submitted" },
  ]);
  expect(await kit("coverage", "--history", "cart#1.3")).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(/No spec has the criterion "cart#1\.3"\.\n.*Did you mean cart#1\.[12]\?/),
  });
});

test("lists what passed on another commit and does not here, and says where no results are recorded", async () => {
  const worse = await kit("coverage", "--worse-than", "HEAD~1");
  expect(worse).toMatchObject({
    exitCode: 1,
    stdout: "cart#1.2\tfailing\t.kiro/specs/cart/requirements.md:8\n",
    stderr: expect.stringContaining("Of 2 criteria that passed at HEAD~1 ("),
  });
  const github = await kit("coverage", "--worse-than", "HEAD~1", "--format", "github");
  expect(github.stdout).toMatch(
    /^::error file=\.kiro\/specs\/cart\/requirements\.md,line=8,title=cart#1\.2 is worse::/,
  );
  expect(await kit("coverage", "--worse-than", "HEAD")).toMatchObject({ exitCode: 0, stdout: "" });
  await repository.git("commit", "--quiet", "--allow-empty", "--message", "Same files");
  expect(await kit("coverage", "--worse-than", "HEAD"), "the tree is the same").toMatchObject({
    exitCode: 0,
  });
  await repository.write("cart.js", "4\n");
  await repository.commit("Change 4", 1_700_000_004);
  expect(await kit("coverage", "--worse-than", "HEAD")).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(
      /No results are recorded of HEAD \([0-9a-f]{12}\)\.\n.*kit specs results junit\.xml --commit/,
    ),
  });
  expect(await kit("coverage", "--worse-than", "nowhere")).toMatchObject({ exitCode: 2 });
});
