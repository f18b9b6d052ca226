import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { testFolder } from "../../testing/test-folder.ts";
import { withoutKeys } from "../testing/agents-project.ts";
import { type RunResult, runKit } from "../testing/run-kit.ts";

const folder = testFolder(afterAll);

function kit(args: readonly string[], cwd = folder): Promise<RunResult> {
  return runKit(args, { cwd, env: withoutKeys });
}

const file = JSON.stringify({ file: "src/agents/reviewer.ts" });

test("a new project runs at once: a prompt, its workflow, its agent, and its skill in its role", async () => {
  const { exitCode, stdout } = await kit(["init", "shop"]);
  expect(exitCode).toBe(0);
  expect(stdout).toContain("+ src/agents/reviewer.ts");
  const cwd = join(folder, "shop");
  const runs = await Promise.all([
    kit(["run", "--prompt", "Which rules apply to src/agents/reviewer.ts?", "-s", "1"], cwd),
    kit(["run", "review-file", "--payload", file], cwd),
    kit(["run", "--agent", "reviewer", "-p", "Review src/workflows/review-file.ts", "-s", "2"], cwd),
    kit(["run", "--skill", "explain-file", "--payload", file, "--role", "careful", "-s", "3"], cwd),
  ]);
  for (const run of runs) {
    expect(run.stderr).not.toMatch(/warning|error/);
    expect(run.exitCode).toBe(0);
    expect(run.stdout).toContain("A function does one thing; its name says which.");
  }
});

test("every command that it suggests works", async () => {
  const { stdout } = await kit(["init", "tried", "--json"]);
  const { next }: { next: readonly string[] } = JSON.parse(stdout);
  expect(next.at(-1)).toBe("kit dev");
  // All but that one, which serves until a person ends it.
  const lines = next.slice(0, -1).filter((line) => line.startsWith("kit "));
  expect(lines.length).toBeGreaterThan(2);
  for (const line of lines) {
    const words = (line.match(/"[^"]*"|'[^']*'|\S+/g) ?? []).map((word) =>
      word.replace(/^(["'])(.*)\1$/, "$2"),
    );
    expect((await kit(words.slice(1), join(folder, "tried"))).exitCode).toBe(0);
  }
});

test("an existing file is kept, and is named", async () => {
  const cwd = join(folder, "old");
  mkdirSync(cwd);
  writeFileSync(join(cwd, "AGENTS.md"), "# Mine\n");
  writeFileSync(join(cwd, "package.json"), '{"name": "old"}\n');
  const { exitCode, stdout } = await kit(["init"], cwd);
  expect(exitCode).toBe(0);
  expect(stdout).toContain("= AGENTS.md (kept as it was)");
  expect(stdout).toContain("Your package.json does not ask for kit yet");
  expect(stdout).toMatch(/^ {2}npm install (file:|kit@)/m);
  expect(readFileSync(join(cwd, "AGENTS.md"), "utf8")).toBe("# Mine\n");
  // Node guesses the kind of modules of a package that does not say it, and says so: kit does not ask it to.
  const run = await kit(["run", "review-file", "--payload", file], cwd);
  expect(run.exitCode).toBe(0);
  expect(run.stderr).not.toContain("Warning");
  const again = JSON.parse((await kit(["init", "--json"], cwd)).stdout);
  expect(again.written).toEqual([]);
  expect(again.kept).toHaveLength(11);
});

test("in an existing package, init names what package.json lacks, and --merge adds it and nothing else", async () => {
  const cwd = join(folder, "existing");
  mkdirSync(cwd);
  const before = {
    name: "existing",
    type: "commonjs",
    scripts: { test: 'echo "Error: no test specified" && exit 1', start: "node mine.js" },
    devDependencies: { typescript: "5.0.0" },
  };
  writeFileSync(join(cwd, "package.json"), JSON.stringify(before, undefined, "\t"));
  const { stdout } = await kit(["init"], cwd);
  expect(stdout).toContain("  npm pkg set type=module\n");
  expect(stdout).toContain(`  npm pkg set 'scripts.test=node --test "tests/**/*.test.ts"'\n`);
  expect(stdout).toContain("  npm pkg set 'scripts.types=tsc -p .'\n");
  expect(stdout).toMatch(/^ {2}npm install --save-dev @types\/node@[\d.]+$/m);
  expect(stdout).not.toContain("scripts.start");
  expect(JSON.parse(readFileSync(join(cwd, "package.json"), "utf8"))).toEqual(before);
  const merged = await kit(["init", "--merge"], cwd);
  expect(merged.stdout).toContain(
    "~ package.json (added type, scripts.test, scripts.types, dependencies.kit, devDependencies.@types/node)",
  );
  const text = readFileSync(join(cwd, "package.json"), "utf8");
  expect(text).toContain('\n\t"type": "module"');
  expect(JSON.parse(text)).toEqual({
    name: "existing",
    type: "module",
    scripts: { test: 'node --test "tests/**/*.test.ts"', start: "node mine.js", types: "tsc -p ." },
    dependencies: { kit: expect.any(String) },
    devDependencies: { typescript: "5.0.0", "@types/node": expect.any(String) },
  });
  expect((await kit(["run", "review-file", "--payload", file], cwd)).exitCode).toBe(0);
  expect((await kit(["init", "--merge"], cwd)).stdout).toContain("= package.json (kept as it was)");
});

test("a configuration of another name counts as the project's configuration, and no second one is created", async () => {
  const cwd = join(folder, "configured");
  mkdirSync(cwd);
  writeFileSync(join(cwd, "kit.toml"), "[agent]\nmax_turns = 5\n");
  const { kept, written } = JSON.parse((await kit(["init", "--json"], cwd)).stdout);
  expect([kept, written.includes("kit.config.ts")]).toEqual([["kit.toml"], false]);
  expect((await kit(["run", "review-file", "--payload", file], cwd)).exitCode).toBe(0);
});

test("in a package of CommonJS files, init tells how agents work there, and why they do not work yet", async () => {
  const cwd = join(folder, "common");
  mkdirSync(cwd);
  writeFileSync(join(cwd, "package.json"), '{"name": "common", "type": "commonjs"}\n');
  const { stdout } = await kit(["init"], cwd);
  const before = await kit(["run", "--prompt", "Where is money?"], cwd);
  expect(before.exitCode).not.toBe(0);
  expect(before.stderr).toContain('package.json needs "type": "module"');
  expect(stdout).toContain("  npm pkg set type=module\n");
});

test("the package gets a name that npm accepts", async () => {
  const names = await Promise.all(
    ["My Shop!", "kit", "Ünïcode"].map(async (name) => {
      await kit(["init", name]);
      return JSON.parse(readFileSync(join(folder, name, "package.json"), "utf8")).name;
    }),
  );
  expect(names).toEqual(["my-shop", "my-agents", "n-code"]);
});

test("a file at the path of the folder is wrong usage, and one at the path of a folder inside it is a conflict", async () => {
  writeFileSync(join(folder, "taken"), "");
  const onFile = await kit(["init", "taken"]);
  expect(onFile.exitCode).toBe(2);
  expect(onFile.stderr).toContain("error: taken is a file.");
  const inProc = await kit(["init", "/proc/x"]);
  expect(inProc.stderr).toContain("error: /proc/x cannot be made: ");
  expect(inProc.exitCode).toBe(2);
  mkdirSync(join(folder, "half"));
  writeFileSync(join(folder, "half/src"), "");
  const below = await kit(["init", "half"]);
  expect(below.exitCode).toBe(1);
  expect(below.stderr).toContain(
    "src/agents/reviewer.ts cannot be written: a file is where a folder would be.",
  );
});

test("a new skill can be run, and is not overwritten", async () => {
  const cwd = join(folder, "skills");
  await kit(["init", "skills"]);
  const made = await kit(["skill", "new", "release-notes", "-d", 'Writes "notes": for a release.'], cwd);
  expect(made.stdout).toBe(
    "Written to .agents/skills/release-notes/SKILL.md. Try: kit run --skill release-notes\n",
  );
  const run = await kit(["run", "--skill", "release-notes"], cwd);
  expect(run.exitCode).toBe(0);
  expect(run.stderr).not.toContain("warning");
  const again = await kit(["skill", "new", "release-notes"], cwd);
  expect(again.exitCode).toBe(1);
  expect(again.stderr).toContain("exists already");
  expect(readdirSync(join(cwd, ".agents/skills"))).toEqual(["explain-file", "release-notes"]);
});

test.each([
  ["Release Notes", "release-notes"],
  ["../up", "up"],
  [".", "release-notes"],
])("%j cannot be a skill's name", async (name, suggestion) => {
  const { exitCode, stderr } = await kit(["skill", "new", name], join(folder, "shop"));
  expect(exitCode).toBe(2);
  expect(stderr).toContain(`Such as ${suggestion}.`);
});
