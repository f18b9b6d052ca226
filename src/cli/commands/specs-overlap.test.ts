import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { type RunResult, runKit } from "../testing/run-kit.ts";

const requirement = (text: string): string =>
  `### Requirement: Free shipping\nThe shop SHALL ${text}.\n\n#### Scenario: Usual\n- WHEN it is asked\n- THEN it SHALL ${text}\n`;
const change = (name: string): string => `openspec/changes/${name}/specs/shipping/spec.md`;

test("prints each overlap on a line, annotates it, and fails a check", async () => {
  await using repository = await createTemporaryRepository({
    ".gitignore": ".kit\n",
    "openspec/specs/shipping/spec.md": `# Shipping\n\n## Purpose\nShip.\n\n## Requirements\n\n${requirement("ship free")}`,
    [change("add-express-shipping")]: `## MODIFIED Requirements\n\n${requirement("ship fast")}`,
  });
  await repository.init();
  await repository.commit("all", 1_000_000);
  const overlap = (...args: readonly string[]): Promise<RunResult> =>
    runKit(["specs", "overlap", ...args], { cwd: repository.root });
  expect(await overlap("--check")).toMatchObject({
    exitCode: 0,
    stdout: "",
    stderr: expect.stringContaining("Nothing overlaps in the work tree and main."),
  });
  await repository.write(change("cheaper"), `## MODIFIED Requirements\n\n${requirement("ship cheap")}`);
  expect(await overlap()).toMatchObject({
    exitCode: 0,
    stdout: `shipping / "Free shipping"\tadd-express-shipping MODIFIED, cheaper MODIFIED\t${change("add-express-shipping")}:3\n`,
    stderr: expect.stringContaining("1 overlap in the work tree and main."),
  });
  expect(await overlap("--check", "--format", "github")).toMatchObject({
    exitCode: 1,
    stdout: expect.stringMatching(
      /^::warning file=openspec\/changes\/add-express-shipping\/specs\/shipping\/spec\.md,line=3,title=Two changes overlap::/,
    ),
  });
  const { stdout } = await overlap("--json");
  expect(JSON.parse(stdout)).toMatchObject({
    base: "main",
    branches: [],
    overlaps: [
      {
        kind: "changes",
        feature: "shipping",
        parts: [{ change: "add-express-shipping" }, { change: "cheaper" }],
      },
    ],
  });
  expect(await overlap("--base", "nowhere")).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('Git knows no revision "nowhere" here.'),
  });
});
