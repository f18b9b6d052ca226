import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Sandbox } from "../../sandboxes/contract.ts";
import { rounds } from "../../testing/campaign.suite.ts";
import { checkCommand } from "../policy/check-command.ts";
import { attackedPrograms, type HostileForms } from "../policy/hostile-forms.suite.ts";
import { type HostileRepository, openHostileRepository } from "./hostile-repository.suite.ts";
import { runCommand } from "./run-command.ts";

const corpus: HostileForms = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../../tests/security/known-forms.json"), "utf8"),
);

let repository: HostileRepository | undefined;
beforeAll(async () => {
  repository = await openHostileRepository();
});
afterAll(() => repository?.close());

/** Programs that are tested with the options in their own help. */
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

const policy = { allowShell: true, allowedCommands: attackedPrograms(corpus) };

/** Generates lines of a program with any of its options, and words that would do harm in the wrong place. */
function mixes(): fc.Arbitrary<string> {
  const installed = programs
    .map((program) => [program, optionsOf(program)] as const)
    .filter(([, options]) => options.length > 3);
  const word = fc.oneof(
    fc.constantFrom(...words),
    fc.constantFrom(...words).map((value) => value.replaceAll(" ", "")),
  );
  return fc.constantFrom(...installed).chain(([program, options]) => {
    const option = fc.constantFrom(...options);
    const joined = fc
      .tuple(option, word)
      .map(([name, value]) => (name.startsWith("--") ? `${name}=${value}` : `${name}${value}`));
    return fc
      .array(fc.oneof(option, word, joined), { minLength: 1, maxLength: 4 })
      .map((parts) => `${program} ${parts.map((each) => `'${each}'`).join(" ")}`);
  });
}

/** Generates `numRuns` lines and runs the accepted ones; returns how many ran. */
async function runMixes(numRuns: number, work: (line: string) => Promise<void>): Promise<number> {
  let ran = 0;
  await fc.assert(
    fc.asyncProperty(mixes(), async (line) => {
      if (!checkCommand(line, policy).allowed) return;
      ran += 1;
      await work(line);
    }),
    { numRuns },
  );
  return ran;
}

test("accepted combinations of a program's options change no file", async () => {
  const { run, contents } = repository ?? expect.unreachable();
  const before = contents();
  const ran = await runMixes(Number(process.env.KIT_FORM_RUNS ?? rounds(60, 200)), async (line) => {
    await run(line, policy);
    expect(contents(), line).toBe(before);
  });
  expect(ran).toBeGreaterThan(5);
});

const tracer = "strace";
const traces = spawnSync(tracer, ["-o", "/dev/null", "true"]).status === 0;

test.skipIf(!traces)(
  "accepted combinations of a program's options start no other program and open no file for writing",
  async () => {
    const { base, sandbox } = repository ?? expect.unreachable();
    const file = join(base, "trace");
    const trace = [tracer, "-f", "-qq", "-e", "trace=execve,openat", "-o", file];
    const traced: Sandbox = {
      ...sandbox,
      exec: (request) => sandbox.exec({ ...request, command: [...trace, ...request.command] }),
    };
    const signal = AbortSignal.timeout(100_000);
    const ran = await runMixes(Number(process.env.KIT_FORM_RUNS ?? rounds(30, 100)), async (line) => {
      rmSync(file, { force: true });
      const call = { command: line, sandbox: traced, policy, env: {}, signal, emit: () => undefined };
      await runCommand(call).catch((error: unknown) => expect(String(error)).toContain("was not run"));
      const calls = existsSync(file) ? readFileSync(file, "utf8") : "";
      const started = [...calls.matchAll(/execve\("[^"]*\/([^"/]+)".* = 0$/gm)].map(([, name]) => name);
      const written = [...calls.matchAll(/openat\([^,]+, "([^"]+)", [^)]*O_(?:WRONLY|RDWR).* = \d+$/gm)].map(
        ([, path]) => path,
      );
      // tar starts a decompressor, and Git refreshes its index.
      const own = new Set([line.split(" ")[0], "git", "gzip", "bzip2", "xz", "zstd"]);
      expect(
        started.filter((name) => !own.has(name)),
        line,
      ).toEqual([]);
      expect(
        written.filter((path = "") => !/^\/dev\/(null|tty)|\/index\.lock$/.test(path)),
        line,
      ).toEqual([]);
    });
    expect(ran).toBeGreaterThan(3);
  },
);
