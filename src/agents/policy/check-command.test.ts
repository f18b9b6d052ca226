import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { argvOf, commandOf, namedToday, readShellCases } from "../../../tests/security/shell-cases.ts";
import { processorMs } from "../../testing/processor-time.ts";
import type { AgentPolicy } from "../define/agent-profile.ts";
import { checkCommand } from "./check-command.ts";
import { secretPatterns } from "./forms/form.ts";
import { parseCommand } from "./parse-command.ts";

const { cases } = readShellCases();

describe("the hostile command lines of tests/security/shell.json", () => {
  test.each(cases.map((item) => [item.id, item.why, item] as const))("%s: %s", (_id, _why, item) => {
    const line = commandOf(item);
    const started = processorMs();
    const decision = checkCommand(line, {
      ...(item.policy.allow_shell === undefined ? {} : { allowShell: item.policy.allow_shell }),
      allowedCommands: item.policy.allowed_commands ?? [],
      ...(item.policy.allow_compound_commands === undefined
        ? {}
        : { allowCompoundCommands: item.policy.allow_compound_commands }),
      ...namedToday[item.id],
    });
    expect(processorMs() - started).toBeLessThan(item.max_ms ?? 1_000);
    if (item.expected !== "allow_or_deny") expect(decision.allowed).toBe(item.expected === "allow");
    const argv = argvOf(item);
    if (!decision.allowed || argv === undefined) return;
    expect("commands" in decision && decision.commands.map(({ words }) => words)).toEqual(argv);
  });
});

test("any text in single quotes is parsed unchanged", () => {
  const word = fc.string({ unit: "grapheme" }).filter((text) => !/['\p{Cc}]/u.test(text));
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 5 }), (words) => {
      const line = `echo ${words.map((text) => `'${text}'`).join(" ")}`;
      const parsed = parseCommand(line);
      expect(parsed.ok && parsed.commands[0]?.words).toEqual(["echo", ...words]);
    }),
  );
});

const run = (line: string, policy: AgentPolicy, isolated = false): string | true => {
  const decision = checkCommand(line, { allowShell: true, ...policy }, isolated);
  return decision.allowed || decision.reason;
};

describe("an entry of allowedCommands", () => {
  test("that names a program allows its known forms, and for Git only those that read", () => {
    const policy = { allowedCommands: ["git", "ls"] };
    expect(run("git -C sub log --oneline -5", policy)).toBe(true);
    expect(run("ls -la src", policy)).toBe(true);
    expect(run("git commit -m x", policy)).toContain('"git commit" has to be named');
    expect(run("cat a.txt", policy)).toContain('"cat" is not on the list of allowed commands: git, ls');
  });

  test("that names a subcommand allows its known forms, and those that write need allowWrite", () => {
    const policy = { allowedCommands: ["git", "git commit"], allowWrite: true };
    expect(run("git commit -m '- a point' --no-verify", policy)).toBe(true);
    expect(run("git -C sub commit -am x", policy)).toBe(true);
    expect(run("git commit --template=/etc/passwd", policy)).toContain('"--template=/etc/passwd"');
    expect(run("git push", policy)).toContain('"git push" has to be named');
    expect(run("git commit -m x", { allowedCommands: ["git commit"] })).toContain("allowWrite");
    expect(run("git log", { allowedCommands: ["git commit"], allowWrite: true })).toBe(
      '"git log" is not on the list of allowed commands: git commit',
    );
    // A command that equals its entry still needs allowWrite.
    expect(run("git stash", { allowedCommands: ["git stash"] })).toContain("allowWrite");
  });

  test("for a program without known forms allows exactly that line", () => {
    const policy = {
      allowedCommands: ["npm test", "pytest", "node --test 'tests/**/*.test.ts'", "./gradlew build"],
    };
    expect(run("npm test", policy)).toBe(true);
    expect(run("npm  'test'", policy)).toBe(true);
    expect(run("pytest", policy)).toBe(true);
    expect(run("node --test 'tests/**/*.test.ts'", policy)).toBe(true);
    expect(run("./gradlew build", policy)).toBe(true);
    expect(run("npm test -C evil", policy)).toContain('"-C" is more or other');
    expect(run("npm run evil", policy)).toContain('"run" is more or other');
    expect(run("npm", policy)).not.toBe(true);
    expect(run("pytest -x", policy)).toContain('"-x" is more or other');
    expect(run("node --test evil.ts", policy)).not.toBe(true);
    expect(run("./gradlew", policy)).not.toBe(true);
  });

  test("that ends in a star allows more arguments, but no options of an interpreter itself", () => {
    const policy = {
      allowedCommands: [
        "pytest *",
        "npm test *",
        "node scripts/x.mjs *",
        "node --test *",
        "make build *",
        "git log *",
      ],
    };
    expect(run("pytest -x tests/a.py", policy)).toBe(true);
    expect(run("npm test", policy)).toBe(true);
    expect(run("npm test -- --run -t x", policy)).toBe(true);
    expect(run("npm test src/a", policy)).toBe(true);
    expect(run("npm test -C evil", policy)).toContain('"-C" is an option of npm itself');
    expect(run("npm test --prefix=evil", policy)).toContain('"--prefix=evil"');
    expect(run("npm run evil", policy)).not.toBe(true);
    expect(run("node scripts/x.mjs --watch", policy)).toBe(true);
    expect(run("node --test a.test.ts", policy)).toBe(true);
    expect(run("node --test --import=./evil.mjs", policy)).toContain('"--import=./evil.mjs"');
    expect(run("make build all", policy)).toBe(true);
    expect(run("make build SHELL=./evil", policy)).toContain('"SHELL=./evil"');
    expect(run("git log -p src", policy)).toBe(true);
    expect(run("git log --output=x", policy)).toContain('"--output=x"');
    expect(run("git show", policy)).not.toBe(true);
    expect(run("git commit -m x", { allowedCommands: ["git *"], allowWrite: true })).toBe(true);
    expect(run("ls -l src", { allowedCommands: ["ls -l *"] })).toBe(true);
  });

  test("that is unsafe allows every line that begins with it", () => {
    const policy = {
      allowedCommands: [
        { command: "npm", unsafe: true },
        { command: "git bisect", unsafe: true },
      ],
    };
    expect(run("npm exec anything", policy)).toBe(true);
    expect(run("git bisect run npm test", policy)).toBe(true);
    expect(run("git -c x=y bisect run npm test", policy)).not.toBe(true);
    expect(run("npm test | sh", policy)).not.toBe(true);
    expect(run("npm test", { allowedCommands: [{ command: "npm", unsafe: false }] })).not.toBe(true);
  });

  test("that names only an interpreter allows only its version option, even with a star", () => {
    for (const command of ["npm", "node *", "awk", "make", "python3", "bash", "xargs"]) {
      const [program = ""] = command.split(" ");
      expect(run(`${program} --version`, { allowedCommands: [command] })).toBe(true);
      expect(run(`${program} x`, { allowedCommands: [command] })).toContain('"x"');
    }
    expect(run("npm ls --depth=0", { allowedCommands: ["npm"] })).toBe(true);
    for (const command of ["node *", "bash", "python3 *"]) {
      const [program = ""] = command.split(" ");
      expect(run(program, { allowedCommands: [command] }), program).not.toBe(true);
    }
  });

  test("that names a launcher allows nothing more with a star", () => {
    const policy = { allowedCommands: ["env *", "git"] };
    expect(run("env git status", policy)).toBe(true);
    expect(run("env touch x", policy)).toContain('"touch"');
    expect(run(`${"env ".repeat(9)}git status`, policy)).toContain("too many");
    expect(run(`${"env ".repeat(16_000)}git status`, policy)).toContain("too many");
    expect(run(`${"find -exec ".repeat(5_000)} x`, {}, true)).toBe(true);
  });

  test("that names a launcher allows it to launch what other entries allow", () => {
    const policy = { allowedCommands: ["timeout", "git", "nice"] };
    expect(run("timeout 5 git status", policy)).toBe(true);
    expect(run("timeout -s KILL -k 1 5 nice -n 5 git status", policy)).toBe(true);
    expect(run("timeout -k 1 5 touch x", policy)).toContain('"touch"');
    expect(run("timeout 5 git status", { allowedCommands: ["git"] })).toContain('"timeout"');
    expect(run("timeout 5 git log", { allowedCommands: ["timeout 5 git status", "git"] })).toContain(
      '"5" is more or other',
    );
    expect(run("timeout soon git status", policy)).toBe('timeout: "soon" is not a time limit');
    expect(run("nice A=b git status", policy)).toBe('nice: "A=b" sets a variable');
  });

  test("that names a launcher allows four of them in a row", () => {
    for (const policy of [{ allowedCommands: ["nice", "ls"] }, {}]) {
      expect(run("nice nice nice nice ls", policy)).toBe(true);
      expect(run("nice nice nice nice nice ls", policy)).toContain("too many");
    }
  });
});

test.each<AgentPolicy>([{ allowedCommands: ["timeout", "nice", "cat"] }, {}])(
  "a known form reports its paths, and its position after launchers: %j",
  (policy) => {
    const commandsOf = (line: string) => {
      const decision = checkCommand(line, { allowShell: true, ...policy });
      return decision.allowed && "commands" in decision ? decision.commands : [];
    };
    const known = { paths: [{ path: "src/a.txt", use: "read" }] };
    expect(commandsOf("cat src/a.txt")).toEqual([{ join: "first", words: ["cat", "src/a.txt"], known }]);
    expect(commandsOf("timeout 5 nice -n 1 cat src/a.txt")).toMatchObject([{ known, programAt: 5 }]);
  },
);

describe("without allowedCommands", () => {
  test("known forms run without isolation, and those that write need allowWrite", () => {
    expect(run("grep -rn alpha src", {})).toBe(true);
    expect(run("timeout 5 git log", {})).toBe(true);
    expect(run("touch a.txt", {})).toContain("allowWrite");
    expect(run("touch a.txt", { allowWrite: true })).toBe(true);
    expect(run("git commit -m x", { allowWrite: true })).toBe(true);
    expect(run("git push", { allowWrite: true })).toContain("connects");
    expect(run("curl https://example.org", { allowWrite: true })).toContain("connects");
    expect(run("npm test", { allowWrite: true })).toContain("install bubblewrap, or name the command");
    expect(run("pytest", {})).toContain('kit does not know what "pytest" does');
    expect(run("/tmp/x/ls", {})).not.toBe(true);
    expect(run("./ls", {})).not.toBe(true);
  });

  test("any simple command runs in isolation, except a shell script", () => {
    for (const line of [
      "npm test",
      "pytest -x",
      "./script.py",
      "find . -name bash",
      "grep sh a.txt",
      "python3 -c 1",
    ])
      expect(run(line, {}, true)).toBe(true);
    for (const line of [
      "sh -c x",
      "bash +c x",
      "rbash -c x",
      "bash script.sh",
      "/bin/dash -c x",
      "bash-5.1 -c x",
      "busybox sh -c x",
      "busybox ash",
      "env bash -c x",
      "env -S 'bash -c x'",
      "env '-iSbash -c x'",
      "env --split-string='bash -c x'",
      "timeout 5 bash -c x",
      "nice -n 5 sh x",
      "timeout 5 nice env sh x",
      "xargs -n1 sh -c x",
      "xargs sh",
      "find . -exec sh -c x ';'",
      "find . -exec env bash -c x ';'",
      "fd -x bash",
      "fd -xbash",
      "watch ls",
      "script -c ls",
      "flock a -c 'ls; ls'",
      "su -c ls",
      "ssh host ls",
      "npx -c 'ls; ls'",
      "setsid sh x",
      "sudo -u a sh -c x",
      "strace -f sh -c x",
      "parallel ls",
    ])
      expect(run(line, {}, true), line).toContain("allowCompoundCommands");
    expect(run("ls; ls", {}, true)).toContain("more than one command");
  });

  test("a list means the same with and without isolation", () => {
    for (const isolated of [false, true]) {
      expect(run("npm exec x", { allowedCommands: ["npm test"] }, isolated)).not.toBe(true);
      expect(run("git log --output=x", { allowedCommands: ["git"] }, isolated)).not.toBe(true);
    }
  });
});

test("compound commands without a list are passed to the shell unchanged", () => {
  const policy = { allowShell: true, allowCompoundCommands: true };
  expect(checkCommand("echo $HOME > x", policy)).toEqual({ allowed: true, shellLine: "echo $HOME > x" });
});

test("rg gets options that leave out files of secrets in any case, because a line of .ignore can reveal them", () => {
  const decision = checkCommand("rg -e -- -e x src", { allowShell: true, allowedCommands: ["rg"] });
  const known = decision.allowed && "commands" in decision ? decision.commands[0]?.known : undefined;
  expect(known?.args).toEqual([
    "-e",
    "--",
    "-e",
    "x",
    "src",
    ...secretPatterns.map((each) => `--glob=!${each}`),
  ]);
});
