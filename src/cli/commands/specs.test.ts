import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { SpecPage } from "../../protocol/spec-query.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { type RunResult, runKit } from "../testing/run-kit.ts";
import { createSampleProject } from "../testing/sample-project.ts";

const project = await createSampleProject();
afterAll(() => project[Symbol.asyncDispose]());

const requirement = "fw_a-checkout-requirements-req1";
const kit = (...args: readonly string[]): Promise<RunResult> =>
  runKit(["specs", ...args], { cwd: project.root });
const json = async (...args: readonly string[]): Promise<unknown> =>
  JSON.parse((await kit(...args, "--json")).stdout);

describe("list", () => {
  test("prints a line per spec, with complete values between tabs", async () => {
    const { exitCode, stdout } = await kit("list");
    expect(exitCode).toBe(0);
    expect(
      stdout
        .trimEnd()
        .split("\n")
        .map((line) => line.split("\t")),
    ).toContainEqual([
      requirement,
      "Kiro",
      "requirement",
      "Requirement 1: Guests pay without an account",
      ".kiro/specs/checkout/requirements.md:3",
    ]);
  });

  test("accepts names and aliases of frameworks alike", async () => {
    const [alias, id] = await Promise.all([kit("list", "-f", "Kiro"), kit("list", "--framework", "fw_a")]);
    expect(alias?.stdout).toBe(id?.stdout);
    expect(alias?.stdout).not.toContain("fw_c-");
  });

  test("--json prints the body of GET /api/specs, one page or with --all everything", async () => {
    const first = (await json("list", "--limit", "2")) as SpecPage;
    expect(first.specs).toHaveLength(2);
    expect(first.counts_by_framework.fw_a).toBeGreaterThan(3);
    const second = (await json("list", "--limit", "2", "--cursor", first.next_cursor ?? "")) as SpecPage;
    const all = (await json("list", "--all")) as SpecPage;
    expect(all.specs).toHaveLength(first.total_count);
    expect(all.specs.slice(0, 4)).toEqual([...first.specs, ...second.specs]);
    expect(all).not.toHaveProperty("next_cursor");
  });

  test("an incomplete page is reported on stderr", async () => {
    const { stderr } = await kit("list", "--limit", "2");
    expect(stderr).toMatch(/2 of \d+ specs; --limit shows more, --all all of them/);
  });

  test("in a folder of the project, lists the whole project with paths relative to that folder", async () => {
    const cwd = join(project.root, ".kiro/specs");
    const { stdout, exitCode } = await runKit(["specs", "list", "--path", "checkout/tasks.md"], { cwd });
    expect(exitCode).toBe(0);
    expect(stdout.trimEnd().split("\n")).toHaveLength(2);
    expect(existsSync(join(cwd, ".kit"))).toBe(false);
  });

  test("a repository without specs prints where kit looks for specs", async () => {
    const cwd = join(project.root, "empty");
    mkdirSync(cwd);
    const { exitCode, stdout, stderr } = await runKit(["specs", "list", "--cwd", cwd], { cwd });
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: "" });
    expect(stderr).toContain(".kiro/specs/<feature>");
  });
});

describe("show and query", () => {
  test("show prints the source of a spec and its text", async () => {
    const { stdout } = await kit("show", requirement);
    expect(stdout).toContain(".kiro/specs/checkout/requirements.md:3-");
    expect(stdout).toContain("WHEN a guest pays THEN the system SHALL send a receipt.");
    expect(await json("show", requirement)).toMatchObject({ id: requirement, spec_type: "requirement" });
  });

  test("an unknown id ends with 1 and suggests the most similar id", async () => {
    const { exitCode, stderr, stdout } = await kit("show", "fw_a-checkout-requirement-req1", "--json");
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`Did you mean ${requirement}?`);
    expect(JSON.parse(stdout)).toMatchObject({ error: { type: "spec_not_found" } });
  });

  test("query finds words, best match first", async () => {
    const { stdout } = await kit("query", "refund");
    expect(stdout.split("\n")[0]).toMatch(/^fw_a-checkout-requirements-req2\t/);
    const none = await kit("query", "zebra");
    expect(none).toMatchObject({ exitCode: 0, stdout: "", stderr: "No spec matches.\n" });
  });
});

describe("validate", () => {
  test("a warning passes, unless there are more warnings than --max-warnings", async () => {
    const { exitCode, stdout, stderr } = await kit("validate");
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^\.kiro\/specs\/checkout\/tasks\.md:7: warning: .*\[dangling-reference\]\n$/);
    expect(stderr).toMatch(/0 errors, 1 warning in \d+ specs/);
    expect((await kit("validate", "--max-warnings", "0")).exitCode).toBe(1);
    expect((await kit("validate", "src")).stdout).toBe("");
  });

  test("an error fails, in every format", async () => {
    const entry = (title: string): string => `- id: a\n  spec_type: task\n  title: ${title}\n  content: x\n`;
    const broken = await createSampleProject();
    await broken.write("specs.yaml", entry("One") + entry("Two"));
    await broken.write("kit.toml", `[[specs.custom]]\ninclude = "specs.yaml"\n`);
    const run = (...args: readonly string[]): Promise<RunResult> =>
      runKit(["specs", "validate", ...args], { cwd: broken.root });
    const [text, asJson, github, sarif] = await Promise.all([
      run(),
      run("--json"),
      run("--format", "github"),
      run("--format", "sarif"),
    ]);
    for (const { exitCode } of [text, asJson, github, sarif]) expect(exitCode).toBe(1);
    expect(text?.stdout).toMatch(/^specs\.yaml:\d+: error: .*\[duplicate-id\]$/m);
    expect(JSON.parse(asJson?.stdout ?? "")).toMatchObject({ valid: false });
    expect(github?.stdout).toMatch(/^::error file=specs\.yaml,line=\d+,title=duplicate-id::/m);
    assertSarif(JSON.parse(sarif?.stdout ?? ""));
    await broken[Symbol.asyncDispose]();
  });
});

/** The rules of the schema of SARIF 2.1.0 for the parts that kit writes, and those of GitHub beyond it. */
function assertSarif(log: unknown): void {
  expect(log).toMatchObject({
    $schema: expect.stringMatching(/^https:.*sarif-schema-2\.1\.0\.json$/),
    version: "2.1.0",
    runs: [{ tool: { driver: { name: "kit", version: expect.stringMatching(/^\d+\.\d+\.\d+$/) } } }],
  });
  const [run] = (log as { runs: readonly SarifRun[] }).runs;
  expect(run?.results.length).toBeGreaterThan(0);
  const rules = run?.tool.driver.rules.map((rule) => rule.id) ?? [];
  expect(new Set(rules).size).toBe(rules.length);
  for (const result of run?.results ?? []) {
    expect(["error", "warning"]).toContain(result.level);
    expect(result.message.text).not.toBe("");
    expect(rules[result.ruleIndex]).toBe(result.ruleId);
    const { artifactLocation, region } = result.locations[0]?.physicalLocation ?? {};
    expect(artifactLocation?.uri).toMatch(/^[A-Za-z0-9._~%!*'()/-]+$/);
    expect(region?.startLine).toBeGreaterThan(0);
  }
}

interface SarifRun {
  readonly tool: { readonly driver: { readonly rules: readonly { readonly id: string }[] } };
  readonly results: readonly {
    readonly ruleId: string;
    readonly ruleIndex: number;
    readonly level: string;
    readonly message: { readonly text: string };
    readonly locations: readonly {
      readonly physicalLocation: {
        readonly artifactLocation: { readonly uri: string };
        readonly region: { readonly startLine: number };
      };
    }[];
  }[];
}

describe("impact", () => {
  test("a changed file leads to specs and tests, with the steps between them", async () => {
    const { exitCode, stdout } = await kit("impact", "src/checkout/cart.ts");
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^0\.\d\d\tfw_a-checkout-design-cart\t.*code_ref src\/checkout\/cart\.ts$/m);
    expect(await json("impact", "src/checkout/cart.ts")).toMatchObject({
      tests: ["src/checkout/cart.test.ts"],
    });
  });

  test("ids count as changed, and a path is relative to the current folder", async () => {
    const byId = (await json("impact", "fw_a-checkout-tasks-1")) as { affected: readonly { id: string }[] };
    expect(byId.affected.map(({ id }) => id)).toContain(requirement);
    const below = await runKit(["specs", "impact", "cart.ts"], { cwd: join(project.root, "src/checkout") });
    expect(below.stdout).toBe((await kit("impact", "src/checkout/cart.ts")).stdout);
  });

  test("--since asks Git, and without arguments uncommitted files count as changed", async () => {
    const changed = await createSampleProject();
    const run = (...args: readonly string[]): Promise<RunResult> =>
      runKit(["specs", "impact", ...args], { cwd: changed.root });
    expect(await run()).toMatchObject({ exitCode: 0, stdout: "", stderr: "Nothing changed.\n" });
    await changed.git("checkout", "--quiet", "-b", "work");
    await changed.write("src/checkout/cart.ts", "export const total = () => 0;\n");
    expect((await run()).stdout).toContain("fw_a-checkout-design-cart");
    await changed.git("commit", "--all", "--quiet", "--message=Change");
    expect((await run()).stdout).toBe("");
    expect((await run("--since", "main")).stdout).toContain("fw_a-checkout-design-cart");
    await changed[Symbol.asyncDispose]();
  });

  test.each([
    [["nothing"], 1, "There is no spec with the id 'nothing'."],
    [["--since", "nowhere"], 2, `Git knows no revision "nowhere" here.`],
    [["../outside.ts"], 2, "../outside.ts lies outside of the project."],
    [["--depth", "9"], 2, "--depth: '9' is not a whole number from 1 to 5."],
  ] as const)("%j is refused", async (args, exitCode, message) => {
    const result = await kit("impact", ...args);
    expect(result.exitCode).toBe(exitCode);
    expect(result.stderr.split("\n")[0]).toBe(`error: ${message}`);
  });
});

describe("graph", () => {
  test("draws the whole graph, or the neighbours of one spec, in three formats", async () => {
    const [all, around, dot] = await Promise.all([
      kit("graph"),
      kit("graph", "fw_a-checkout-tasks-2"),
      kit("graph", "--format", "dot"),
    ]);
    expect(all?.stdout).toMatch(/^flowchart LR\n/);
    expect(all?.stdout.length).toBeGreaterThan(around?.stdout.length ?? 0);
    expect(around?.stdout.trimEnd().split("\n")).toHaveLength(4);
    expect(dot?.stdout).toMatch(/^digraph specs \{\n(?:.*\n)*\}\n$/);
    expect(await json("graph")).toMatchObject({ nodes: expect.anything(), edges: expect.anything() });
    expect((await kit("graph", "nothing")).exitCode).toBe(1);
  });
});

describe("export", () => {
  test("JSON and JSON Lines go to stdout and contain every spec", async () => {
    const [asJson, lines] = await Promise.all([kit("export"), kit("export", "--format", "jsonl")]);
    const { specs } = JSON.parse(asJson?.stdout ?? "");
    expect(
      lines?.stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual(specs);
  });

  test("text of spec files that belongs to no spec is reported as lost, in every format", async () => {
    const notes = ".kiro/specs/notes/tasks.md";
    await using other = await createTemporaryRepository({ [notes]: "# Plan\n\nFirst talk.\n\n- [ ] 1. A\n" });
    for (const format of ["json", "kiro"]) {
      const { stderr } = await runKit(["specs", "export", "--format", format], { cwd: other.root });
      expect(stderr).toBe(`lost: ${notes}: 1 line outside of specs is left out: 3 (Plan).\n`);
    }
  });

  test("files are written to a folder; unchanged files stay, and no other file is replaced", async () => {
    const out = join(project.root, "..", `${project.root.split("/").at(-1)}-out`);
    const first = await kit("export", "--format", "kiro", "--out", out);
    expect(first).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^3 files written to /) });
    const tasks = join(out, ".kiro/specs/checkout/tasks.md");
    expect(readFileSync(tasks, "utf8")).toContain("Pay back");
    expect((await kit("export", "--format", "kiro", "--out", out)).stdout).toMatch(
      /^0 files written .* 3 files up to date/,
    );
    writeFileSync(tasks, "mine\n");
    const refused = await kit("export", "--format", "kiro", "--out", out);
    expect(refused).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("tasks.md exists already"),
    });
    expect(readFileSync(tasks, "utf8")).toBe("mine\n");
    expect((await kit("export", "--format", "kiro", "--out", out, "--overwrite")).exitCode).toBe(0);
    expect(readFileSync(tasks, "utf8")).toContain("Pay back");
    rmSync(out, { recursive: true });
  });

  test("several files without a folder are wrong usage", async () => {
    expect(await kit("export", "--format", "kiro")).toMatchObject({ exitCode: 2, stdout: "" });
    expect((await kit("export", "--format", "kirro")).stderr).toContain("Did you mean kiro?");
  });
});

describe("coverage and stale", () => {
  test("coverage lists the criteria without a test, and can fail", async () => {
    const { exitCode, stdout, stderr } = await kit("coverage");
    expect(exitCode).toBe(0);
    expect(stdout).toContain("checkout#1.2\tmissing\t");
    expect(stdout).not.toContain("checkout#1.1");
    expect(stderr).toContain("1 of 3 criteria covered (33 %)");
    expect((await kit("coverage", "--all")).stdout).toContain("checkout#1.1\tcovered\t");
    const ofFile = await kit("coverage", "src/checkout/cart.test.ts");
    expect(ofFile.stdout).toMatch(/^checkout#1\.1\tcovered\t.*\tsrc\/checkout\/cart\.test\.ts:\d+\n$/);
    expect(ofFile.stderr).toContain("src/checkout/cart.test.ts names 1 criterion.");
    expect(await kit("coverage", "src/checkout/cart.ts")).toMatchObject({ exitCode: 2, stdout: "" });
    expect((await kit("coverage", "--fail-under", "34")).exitCode).toBe(1);
    expect((await kit("coverage", "--fail-under", "33")).exitCode).toBe(0);
    expect((await kit("coverage", "--feature", "checkuot")).stderr).toContain("Did you mean checkout?");
  });

  test("a spec whose code changed after it is stale until a person accepts it", async () => {
    const aging = await createSampleProject();
    const run = (...args: readonly string[]): Promise<RunResult> =>
      runKit(["specs", "stale", ...args], { cwd: aging.root });
    expect(await run("--check")).toMatchObject({ exitCode: 0, stdout: "" });
    await aging.write("src/checkout/cart.ts", "export const total = () => 0;\n");
    await aging.git("commit", "--all", "--quiet", "--message=Change");
    const stale = await run("--check");
    expect(stale.exitCode).toBe(1);
    expect(stale.stdout).toContain("fw_a-checkout-design-cart\tCart\t");
    expect((await run("--accept", "nothing")).exitCode).toBe(1);
    expect((await run("--accept", "fw_a-checkout-design-cart")).stdout).toMatch(
      /^Accepted 1 spec in .*commit it/,
    );
    expect((await run()).stdout).not.toContain("fw_a-checkout-design-cart");
    expect((await run("--accept-all")).exitCode).toBe(0);
    expect((await run("--check")).exitCode).toBe(0);
    await aging[Symbol.asyncDispose]();
  });
});

test("a missing file is named, and so is a list without code", async () => {
  const { stderr } = await kit("impact", "src/nope.ts");
  expect(stderr).toContain("src/nope.ts: no such file in the project now.");
  const { stderr: unknown } = await kit("show", "fw_a-nope");
  expect(unknown).toContain("kit specs list --all --rules");
});

test("no terminal sequence of a file reaches the output, in a table or in JSON", async () => {
  const outputs = await Promise.all([
    kit("list", "--all", "--rules"),
    kit("list", "--all", "--rules", "--json"),
    kit("query", "errors"),
    kit("graph"),
    kit("graph", "--format", "dot"),
    kit("export"),
  ]);
  for (const { stdout, stderr } of outputs) {
    expect(stdout).toContain("rrors");
    expect(stdout + stderr).not.toContain("\u001b");
  }
});
