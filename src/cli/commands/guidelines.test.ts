import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { GuidelineList } from "../../protocol/guideline.ts";
import type { Explanation } from "../../protocol/guideline-query.ts";
import { type RunResult, runKit } from "../testing/run-kit.ts";
import { createSampleProject } from "../testing/sample-project.ts";

const project = await createSampleProject();
afterAll(() => project[Symbol.asyncDispose]());

const kitIn =
  ({ root }: { readonly root: string }) =>
  (...args: readonly string[]): Promise<RunResult> =>
    runKit(["guidelines", ...args], { cwd: root });
const kit = kitIn(project);
const json = async (...args: readonly string[]): Promise<unknown> =>
  JSON.parse((await kit(...args, "--json")).stdout);

async function idOf(source: string, title: string): Promise<string> {
  const { guidelines } = (await json("list", "--source", source)) as GuidelineList;
  return guidelines.find((guideline) => guideline.title === title)?.id ?? "";
}

describe("list and show", () => {
  test("prints a line per guideline, and with --json the body of GET /api/guidelines", async () => {
    const { exitCode, stdout } = await kit("list");
    const list = (await json("list")) as GuidelineList;
    expect(exitCode).toBe(0);
    expect(stdout.trimEnd().split("\n")).toHaveLength(list.total_count);
    expect(list.counts_by_source).toMatchObject({ fw_b: 2, fw_c: 2 });
  });

  test("filters by source, file and words, and accepts every name of a source", async () => {
    const [alias, id] = await Promise.all([kit("list", "-s", "claude"), kit("list", "-s", "fw_c")]);
    expect(alias?.stdout).toBe(id?.stdout);
    const forFile = await kit("list", "--file", "src/checkout/cart.test.ts", "--search", "criterion");
    expect(forFile.stdout).toMatch(/^[0-9a-f]{16}\tCursor\tTests\t\*\*\/\*\.test\.ts\t/);
    expect((await kit("list", "-s", "curser")).stderr).toContain("Did you mean cursor?");
    expect(await kit("list", "-q", "zebra")).toMatchObject({
      exitCode: 0,
      stdout: "",
      stderr: "No guideline matches.\n",
    });
  });

  test("accepts the beginning of an id, and ends with 1 for an unknown id", async () => {
    const id = await idOf("claude", "Money");
    expect((await kit("show", id.slice(0, 6))).stdout).toContain("Amounts are whole cents");
    expect(await kit("show", "0000")).toMatchObject({ exitCode: 1, stdout: "" });
    expect((await kit("show", `${id.slice(0, 15)}x`)).stderr).toContain(`Did you mean ${id}?`);
  });

  test("a project without guidelines shows samples, and marks them as samples", async () => {
    const empty = await createSampleProject();
    for (const path of ["CLAUDE.md", ".cursorrules", ".cursor/rules/tests.mdc"])
      await empty.git("rm", "--quiet", path);
    const { stdout, stderr } = await kitIn(empty)("list");
    expect(stdout).toContain("\tSample\t");
    expect(stderr).toContain("These are samples");
    await empty[Symbol.asyncDispose]();
  });
});

describe("explain", () => {
  test("prints the guidelines that apply, why, and to which tool", async () => {
    const explanation = (await json(
      "explain",
      "src/checkout/cart.test.ts",
      "--tool",
      "cursor",
    )) as Explanation;
    expect(explanation).toMatchObject({ file: "src/checkout/cart.test.ts", tool: "fw_b" });
    const { stdout } = await kit("explain", "src/checkout/cart.test.ts", "--tool", "cursor");
    expect(stdout).toContain("\tmatches **/*.test.ts\t");
    expect(stdout).not.toContain("Claude Code");
  });

  test("refuses a path outside of the project and an unknown tool as wrong usage", async () => {
    expect(await kit("explain", "/etc/passwd")).toMatchObject({ exitCode: 2, stdout: "" });
    expect((await kit("explain", "a.ts", "--tool", "cluade")).stderr).toContain("Did you mean claude?");
  });
});

describe("convert and export", () => {
  test("convert prints the result byte for byte, and writes nothing", async () => {
    const id = await idOf("cursor", "Tests");
    const { exitCode, stdout } = await kit("convert", id, "--to", "steering");
    expect(exitCode).toBe(0);
    expect(stdout).toBe(((await json("convert", id, "--to", "kiro")) as { content: string }).content);
    expect(stdout).toContain("fileMatchPattern");
    expect(await project.git("status", "--porcelain")).toBe("");
  });

  test("--write writes, and refuses to replace a file that a person wrote", async () => {
    const sample = await createSampleProject();
    const run = kitIn(sample);
    const id = await idOf("cursor", "Tests");
    const { stdout } = await run("convert", id, "-t", "steering", "--write");
    expect(stdout).toBe("Written to .kiro/steering/tests.md.\n");
    await sample.write(".kiro/steering/tests.md", "mine\n");
    expect(await run("convert", id, "-t", "steering", "--write")).toMatchObject({ exitCode: 1, stdout: "" });
    expect(readFileSync(join(sample.root, ".kiro/steering/tests.md"), "utf8")).toBe("mine\n");
    expect((await run("convert", id, "-t", "steering", "--write", "--overwrite")).exitCode).toBe(0);
    await sample[Symbol.asyncDispose]();
  });

  test("export prints one file, and both need a format", async () => {
    expect((await kit("export", "--to", "claude")).stdout).toMatch(/^# .* guidelines\n/);
    expect(await json("export", "--to", "cursor")).toMatchObject({ filename: ".cursorrules" });
    for (const command of [["export"], ["convert", "0000"]] as const) {
      const answer = await kit(...command);
      expect(answer).toMatchObject({ exitCode: 2, stdout: "" });
      expect(answer.stderr).toContain("--to is missing.");
    }
  });
});

describe("lint and sync", () => {
  test("lint finds two rules that contradict each other, in every format, and says how to ignore them", async () => {
    const [text, sarif, strict] = await Promise.all([
      kit("lint"),
      kit("lint", "--format", "sarif"),
      kit("lint", "--max-warnings", "0"),
    ]);
    expect(text?.stdout).toBe(
      'CLAUDE.md:5: warning: "Never store amounts as decimals" contradicts "Always store amounts as decimals" in .cursorrules:3. [contradiction]\n',
    );
    expect(text?.stderr).toContain('[lint] ignore = ["CLAUDE.md: contradiction"]');
    expect(JSON.parse(sarif?.stdout ?? "")).toMatchObject({
      version: "2.1.0",
      runs: [{ results: [{ relatedLocations: [{ physicalLocation: { region: { startLine: 3 } } }] }] }],
    });
    expect(strict?.exitCode).toBe(1);
  });

  test("lint --fix writes the corrections, keeps all other bytes, and leaves out what kit.toml ignores", async () => {
    const sample = await createSampleProject();
    const run = kitIn(sample);
    const rule =
      '\ufeff---\r\nglobs: src/*.ts, docs\r\nalwaysApply: "true"\r\n---\r\n[a](mdc:lib/cart.ts) [b](mdc:lib/cart.ts)\r\n';
    await sample.write(".cursor/rules/a.mdc", rule.replace('alwaysApply: "true"', "description: d"));
    await sample.write("docs/a.md", "x\n");
    await sample.write("kit.toml", '[lint]\nignore = ["contradiction"]\n');
    expect((await run("lint")).stderr).toContain("--fix mends all of them.");
    const { stdout, stderr, exitCode } = await run("lint", "--fix");
    expect([stdout, exitCode]).toEqual(["", 0]);
    expect(stderr).toContain("fixed: .cursor/rules/a.mdc:2:8: now src/**/*.ts\n");
    expect(stderr).toContain("No problems in");
    expect(readFileSync(join(sample.root, ".cursor/rules/a.mdc"), "utf8")).toBe(
      "\ufeff---\r\nglobs: src/**/*.ts, docs/**\r\ndescription: d\r\n---\r\n[a](mdc:src/checkout/cart.ts) [b](mdc:src/checkout/cart.ts)\r\n",
    );
    await sample[Symbol.asyncDispose]();
  });

  test("sync --check without a source of truth has nothing to compare, and other syncs ask for one", async () => {
    expect(await kit("sync", "--check")).toMatchObject({ exitCode: 0, stdout: "" });
    expect((await kit("sync", "--check")).stderr).toContain("guidelines.source names one");
    expect(await json("sync", "--check")).toEqual({ entries: [], in_sync: true });
    expect(await kit("sync")).toMatchObject({ exitCode: 2 });
  });

  test("sync reports which tool reads the source itself, and writes nothing for it", async () => {
    const sample = await createSampleProject();
    await sample.write("AGENTS.md", "## Style\n\nTabs.\n");
    const at = (...args: readonly string[]) => runKit(["guidelines", "sync", ...args], { cwd: sample.root });
    const { stdout, stderr, exitCode } = await at("--from", "agents", "--to", "windsurf,copilot");
    expect([stdout, exitCode]).toEqual(["", 0]);
    expect(stderr).toBe(
      "nothing to write: GitHub Copilot reads AGENTS.md itself.\nnothing to write: Windsurf reads AGENTS.md itself.\n✓ Nothing needs to be written.\n",
    );
    expect((await at("--from", "agents", "--to", "agents")).stderr).toContain(
      "the source is all that is named",
    );
    const { stderr: none } = await at("--from", "zed", "--to", "agents");
    expect(none).toContain("There is no hand-written guideline in .rules");
    await sample[Symbol.asyncDispose]();
  });

  test("--with copies skills and carries MCP servers, from the command line or the configuration", async () => {
    const sample = await createSampleProject();
    const run = kitIn(sample);
    await sample.write(".agents/skills/a/SKILL.md", "---\nname: a\ndescription: Does.\n---\nDo.\n");
    await sample.write("kit.toml", '[mcp.servers.s]\ncommand = "x"\n');
    const options = ["sync", "--with", "skills,mcp", "--to", "claude,codex"] as const;
    expect(await run(...options, "--check")).toMatchObject({
      exitCode: 1,
      stdout: [
        "create\t.claude/skills/a/SKILL.md\tClaude Code",
        "create\t.codex/config.toml\tCodex",
        "create\t.mcp.json\tClaude Code\n",
      ].join("\n"),
    });
    expect((await run(...options, "--write")).stderr).toContain("4 files written from its source.");
    await sample.write(
      "kit.toml",
      '[mcp.servers.s]\ncommand = "y"\n[guidelines]\ntargets = ["Claude"]\nwith = { mcp = "kit" }\n',
    );
    expect(await run("sync", "--check")).toMatchObject({
      exitCode: 1,
      stdout: "update\t.mcp.json\tClaude Code\n",
    });
    for (const wrong of ["hooks", "mcp=agents", "skills=codex"])
      expect(await run("sync", "--with", wrong)).toMatchObject({ exitCode: 2 });
    expect((await run("sync", "--with", "mcp=cursor")).stderr).toContain(
      "There is no MCP server in .cursor/mcp.json",
    );
    await sample[Symbol.asyncDispose]();
  });

  test("--plan writes only the plan that an earlier --json has printed", async () => {
    const sample = await createSampleProject();
    const run = kitIn(sample);
    const sync = ["sync", "--from", "claude", "--to", "agents"] as const;
    await sample.write("plan.json", (await run(...sync, "--json")).stdout);
    await sample.write("AGENTS.md", "# Meanwhile\n");
    const refused = await run(...sync, "--write", "--plan", "plan.json");
    expect(refused).toMatchObject({ exitCode: 1, stdout: "" });
    expect(refused.stderr).toContain("AGENTS.md is not as the preview showed it any more");
    expect(readFileSync(join(sample.root, "AGENTS.md"), "utf8")).toBe("# Meanwhile\n");
    await sample.write("plan.json", (await run(...sync, "--json")).stdout);
    expect((await run(...sync, "--write", "--plan", "plan.json")).exitCode).toBe(0);
    expect(await run(...sync, "--plan", "plan.json")).toMatchObject({ exitCode: 2 });
    expect((await run(...sync, "--write", "--plan", "AGENTS.md")).stderr).toContain("is not the preview");
    expect((await run(...sync, "--write", "--plan", "none.json")).stderr).toContain("cannot be read");
    const convert = ["convert", await idOf("cursor", "Tests"), "-t", "steering"] as const;
    await sample.write("plan.json", (await run(...convert, "--json")).stdout);
    await sample.write(".kiro/steering/tests.md", "mine\n");
    const late = await run(...convert, "--write", "--overwrite", "--plan", "plan.json");
    expect(late).toMatchObject({ exitCode: 1, stdout: "" });
    expect(readFileSync(join(sample.root, ".kiro/steering/tests.md"), "utf8")).toBe("mine\n");
    await sample[Symbol.asyncDispose]();
  });

  test("sync prints what it would write, writes it, and checks it", async () => {
    const sample = await createSampleProject();
    await sample.git("rm", "--quiet", ".cursorrules", ".cursor/rules/tests.mdc");
    const run = kitIn(sample);
    const planned = await run("sync", "--from", "claude", "--to", "agents,cursor");
    expect(planned).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^create\t.*AGENTS\.md/m) });
    expect((await run("sync", "--from", "claude", "--to", "agents", "--check")).exitCode).toBe(1);
    expect((await run("sync", "--from", "claude", "--to", "agents", "--write")).exitCode).toBe(0);
    expect(readFileSync(join(sample.root, "AGENTS.md"), "utf8")).toContain("Amounts are whole cents");
    expect((await run("sync", "--from", "claude", "--to", "agents", "--check")).exitCode).toBe(0);
    expect((await run("sync", "--from", "claude", "--write", "--check")).exitCode).toBe(2);
    expect((await run("sync")).exitCode).toBe(2);
    await sample[Symbol.asyncDispose]();
  });
});

test("no terminal sequence of a file reaches a table or an error message", async () => {
  const outputs = await Promise.all([
    kit("list"),
    kit("list", "--json"),
    kit("explain", "src/a.ts"),
    kit("show", "\u001b[2J"),
  ]);
  for (const { stdout, stderr } of outputs) expect(stdout + stderr).not.toContain("\u001b");
});
