import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkCommand } from "../policy/check-command.ts";
import { attackedPrograms, type HostileForms } from "../policy/hostile-forms.suite.ts";
import { type HostileRepository, openHostileRepository } from "./hostile-repository.suite.ts";

const corpus: HostileForms = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../../tests/security/known-forms.json"), "utf8"),
);

let repository: HostileRepository | undefined;
beforeAll(async () => {
  repository = await openHostileRepository();
});
afterAll(() => repository?.close());

/** Options as programs tell them themselves, and words that would do harm in the wrong place. */
const programs = [
  "git log",
  "git diff",
  "git show",
  "git grep",
  "git status",
  "git branch",
  "git tag",
  "git ls-files",
  "git blame",
  "git rev-parse",
  "sort",
  "uniq",
  "grep",
  "find",
  "sed",
  "tar",
  "shuf",
  "diff",
  "cut",
  "head",
  "tail",
  "xxd",
  "date",
  "file",
  "od",
  "rg",
  "jq",
  "nl",
  "tac",
  "tee",
  "split",
  "cmp",
  "strings",
  "column",
  "base64",
];
const words = [
  "a.txt",
  "b.txt",
  "PWNED",
  "touch PWNED",
  "./evil.sh",
  "--",
  "-",
  "HEAD",
  "alpha",
  "p",
  "w PWNED",
  "1",
  "evil.sed",
  ".",
  "sub",
  "e touch PWNED",
  "a.json",
];

function optionsOf(program: string): readonly string[] {
  const [name = "", subcommand] = program.split(" ");
  const args = subcommand === undefined ? ["--help"] : [subcommand, "-h"];
  let help = "";
  try {
    help = execFileSync(name, [...args], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 5_000,
    });
  } catch (error) {
    help =
      String((error as { stdout?: string }).stdout ?? "") +
      String((error as { stderr?: string }).stderr ?? "");
  }
  return [...new Set(help.match(/(?<![\w-])--?[a-zA-Z0-9][\w-]*/g) ?? [])].slice(0, 150);
}

test("what is accepted of any mix of a program's own options changes no file", async () => {
  const installed = programs
    .map((program) => [program, optionsOf(program)] as const)
    .filter(([, options]) => options.length > 3);
  const { run, contents } = repository ?? expect.unreachable();
  const before = contents();
  const word = fc.oneof(
    fc.constantFrom(...words),
    fc.constantFrom(...words).map((value) => value.replaceAll(" ", "")),
  );
  const line = fc.constantFrom(...installed).chain(([program, options]) => {
    const option = fc.constantFrom(...options);
    const part = fc.oneof(
      option,
      word,
      fc
        .tuple(option, word)
        .map(([name, value]) => (name.startsWith("--") ? `${name}=${value}` : `${name}${value}`)),
    );
    return fc
      .array(part, { minLength: 1, maxLength: 5 })
      .map((parts) => `${program} ${parts.map((each) => `'${each}'`).join(" ")}`);
  });
  let ran = 0;
  await fc.assert(
    fc.asyncProperty(line, async (command) => {
      const policy = { allowShell: true, allowedCommands: attackedPrograms(corpus) };
      if (!checkCommand(command, policy).allowed) return;
      ran += 1;
      await run(command, policy);
      expect(contents(), command).toBe(before);
    }),
    { numRuns: Number(process.env.KIT_FORM_RUNS ?? 250) },
  );
  expect(ran).toBeGreaterThan(5);
});
