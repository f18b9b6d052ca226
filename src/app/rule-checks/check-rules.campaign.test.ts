import { existsSync } from "node:fs";
import { chmod, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openProject } from "../../project/open-project.ts";
import type { RuleCheck } from "../../project/project-config.ts";
import { wallTest } from "../../sandboxes/host/wall/walled.suite.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { checkRules, type RuleReport } from "./check-rules.ts";

const base = {
  "AGENTS.md": "# Shop\n\n## Money\n\nWhole cents.\n\n## Tests\n\nBeside.\n",
  "tools/whole-cents.mjs": `import { readFileSync } from "node:fs";
for (const path of process.argv.slice(2))
  for (const [index, line] of readFileSync(path, "utf8").split("\\n").entries())
    if (/\\d\\.\\d/.test(line)) {
      console.log(\`\${path}:\${index + 1}: no whole cents\`);
      process.exitCode = 1;
    }
`,
  "src/a.mjs": "export const price = 100;\n",
};
const money: RuleCheck = {
  rule: "AGENTS.md#money",
  files: "src/**",
  run: "node tools/whole-cents.mjs {files}",
};

async function check(
  files: Readonly<Record<string, string>>,
  checks: readonly RuleCheck[],
  more: { readonly files?: readonly string[]; readonly prepare?: (root: string) => Promise<unknown> } = {},
): Promise<RuleReport> {
  await using repository = await createTemporaryRepository({ ...base, ...files });
  await more.prepare?.(repository.root);
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  try {
    return await checkRules(project, { checks, files: more.files, isolation: {} });
  } finally {
    await project.close();
  }
}

test("a broken rule is named with its lines, and the rules that nothing checks are listed", async () => {
  const report = await check({ "src/b.mjs": "// Books\nexport const price = 9.5;\n" }, [money]);
  expect(report.checks).toEqual([
    {
      ...{ name: "AGENTS.md#money", title: "Money", path: "AGENTS.md", line: 3, run: money.run, files: 2 },
      end: "broken",
      findings: [{ path: "src/b.mjs", line: 2, message: "no whole cents" }],
      output: "src/b.mjs:2: no whole cents",
    },
  ]);
  expect(report.unchecked.map(({ name }) => name)).toEqual(["AGENTS.md#tests"]);
});

test("only the given files are checked, and a check without one of them does not run", async () => {
  const files = { "src/b.mjs": "export const price = 9.5;\n" };
  const ends = async (given: readonly string[]): Promise<unknown> =>
    (await check(files, [money], { files: given })).checks.map((each) => [each.end, each.files]);
  expect(await ends(["src/a.mjs", "src/gone.mjs", "README.md"])).toEqual([["kept", 1]]);
  expect(await ends(["README.md"])).toEqual([["skipped", 0]]);
  expect(await ends(["src/gone.mjs"])).toEqual([["skipped", 0]]);
  const whole = { ...money, run: "node tools/whole-cents.mjs src/b.mjs" };
  expect((await check(files, [whole], { files: ["src/gone.mjs"] })).checks[0]?.end).toBe("broken");
});

test("a command that does not start, or does not end in time, has failed, and no rule is kept by it", async () => {
  const outcomes = async (run: string): Promise<unknown> => {
    const { checks } = await check({}, [{ ...money, run, timeout_seconds: 1 }]);
    return checks.map(({ end, output }) => `${end}: ${output}`);
  };
  expect(await outcomes("no-such-program {files}")).toEqual([
    expect.stringMatching(/^failed: It ended with exit code 127\..*not found/s),
  ]);
  expect(await outcomes("echo begun; sleep 20 # {files}")).toEqual([
    "failed: It did not end within 1 s.\nbegun",
  ]);
  expect(await outcomes("kill -9 $$ # {files}")).toEqual(["failed: It ended with exit code 137."]);
  expect(await outcomes("exit 3 # {files}")).toEqual([
    "broken: It ended with exit code 3, and printed nothing.",
  ]);
});

test("no name of a file is read as code or as an option", async () => {
  const names = ["-rf", "a b", "$(touch pwned)", "`touch pwned`", "';touch pwned;'", 'q"', "ü*", "n\nl"];
  const files = Object.fromEntries(names.map((name) => [`src/${name}.mjs`, "const price = 9.5;\n"]));
  for (const run of [money.run, money.run.replace("{files}", '"{files}"')]) {
    let pwned = "";
    const report = await check(
      { ...files, "-x.mjs": "9.5" },
      [{ ...money, run, files: ["src/**", "-x.mjs"] }],
      {
        prepare: async (root) => {
          pwned = join(root, "pwned");
        },
      },
    );
    expect(report.checks[0]?.end).toBe("broken");
    expect(existsSync(pwned)).toBe(false);
    if (run === money.run)
      expect(report.checks[0]?.findings.map(({ path }) => path)).toEqual(
        ["-x.mjs", ...Object.keys(files).filter((path) => !path.includes("\n"))].sort(),
      );
  }
});

test("many files are given to several commands, and their output is kept at both ends", async () => {
  const names = Array.from({ length: 500 }, (_, index) => `src/${String(index).padStart(220, "a")}.mjs`);
  const files = Object.fromEntries(names.map((name) => [name, ""]));
  const run = 'echo "$#" files; for file in {files}; do echo $file; done; exit 1';
  const { checks } = await check(files, [{ ...money, run }]);
  expect(checks[0]).toMatchObject({ end: "broken", files: 501, findings: [] });
  expect(checks[0]?.output).toMatch(/^\d+ files\n.*\[… \d+ characters …\].*\.mjs$/s);
  expect(checks[0]?.output.length).toBeLessThan(2_100);
});

wallTest(
  "a check changes nothing, and sees no secret, no network and nothing outside of the project",
  async () => {
    const files = { ".env": "KEY=secret\n", "src/b.mjs": "" };
    const run = [
      'test ! -s .env && ! echo x > src/b.mjs && ! echo x > AGENTS.md && test -z "$KIT_CHECK_KEY"',
      "test ! -e /etc/hostname && test ! -e src/link.mjs # {files}",
    ].join(" && ");
    process.env.KIT_CHECK_KEY = "secret";
    try {
      const report = await check(files, [{ ...money, run }], {
        prepare: (root) => symlink("/etc/hostname", join(root, "src/link.mjs")),
      });
      expect(report).toMatchObject({ isolated: true, checks: [{ end: "kept" }] });
    } finally {
      delete process.env.KIT_CHECK_KEY;
    }
  },
);

test("the packages of the repository are there for a project below its top", async () => {
  await using repository = await createTemporaryRepository({
    "node_modules/.bin/accepts": "#!/bin/sh\nexec node -e \"require('accepted')\"\n",
    "node_modules/accepted/index.js": "",
    "shop/AGENTS.md": base["AGENTS.md"],
    "shop/src/a.mjs": "",
  });
  await repository.init();
  await chmod(join(repository.root, "node_modules/.bin/accepts"), 0o755);
  const project = await openProject({ root: join(repository.root, "shop"), indexFile: ":memory:" });
  const report = await checkRules(project, { checks: [{ ...money, run: "accepts {files}" }], isolation: {} });
  await project.close();
  expect(report.checks).toMatchObject([{ end: "kept", output: "" }]);
});

test("a check of a whole file covers all of its rules, and one of an unknown rule or a wrong glob is an error", async () => {
  const report = await check({}, [{ ...money, rule: "AGENTS.md" }]);
  expect(report).toMatchObject({ checks: [{ name: "AGENTS.md", end: "kept" }], unchecked: [] });
  await expect(check({}, [{ ...money, files: ["src/**", "src/"] }])).rejects.toThrow(
    "src/ of AGENTS.md#money",
  );
  await expect(check({}, [{ ...money, rule: "AGENTS.md#mony" }])).rejects.toThrow(
    "did you mean AGENTS.md#money?",
  );
});
