import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { argvOf, commandOf, readShellCases } from "../../../tests/security/shell-cases.ts";
import { processorMs } from "../../testing/processor-time.ts";
import { checkCommand } from "./check-command.ts";
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
    });
    expect(processorMs() - started).toBeLessThan(item.max_ms ?? 1_000);
    if (item.expected !== "allow_or_deny") expect(decision.allowed).toBe(item.expected === "allow");
    const argv = argvOf(item);
    if (!decision.allowed || argv === undefined) return;
    expect("commands" in decision && decision.commands.map(({ words }) => words)).toEqual(argv);
  });
});

test("whatever stands in single quotes comes out as it went in", () => {
  const word = fc.string({ unit: "grapheme" }).filter((text) => !/['\p{Cc}]/u.test(text));
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 5 }), (words) => {
      const line = `echo ${words.map((text) => `'${text}'`).join(" ")}`;
      const parsed = parseCommand(line);
      expect(parsed.ok && parsed.commands[0]?.words).toEqual(["echo", ...words]);
    }),
  );
});

test("an entry with arguments allows these first arguments only", () => {
  const policy = { allowShell: true, allowedCommands: ["npm test"] };
  expect(checkCommand("npm test -- --run", policy).allowed).toBe(true);
  expect(checkCommand("npm run evil", policy).allowed).toBe(false);
  expect(checkCommand("npm", policy).allowed).toBe(false);
});

test("a launcher on the list runs listed programs only", () => {
  const policy = { allowShell: true, allowedCommands: ["timeout", "git"] };
  expect(checkCommand("timeout 5 git status", policy).allowed).toBe(true);
  expect(checkCommand("timeout -k 1 5 touch x", policy).allowed).toBe(false);
  expect(checkCommand("timeout 5 timeout 5 touch x", policy).allowed).toBe(false);
});

describe("a listed program runs no other one by an option", () => {
  const policy = {
    allowShell: true,
    allowedCommands: ["git", "sed", "sort", "tar", "env", "ssh", "timeout"],
  };

  test.each([
    ["abbreviated", "git ls-remote '--upl=touch x' ."],
    ["abbreviated", "git rebase --root --exe 'touch x'"],
    ["abbreviated", "sort --compress-prog=touch a"],
    ["abbreviated", "tar -xf a.tar --to-com=touch"],
    ["abbreviated", "env '--split=touch x' git"],
    ["behind other letters", "git grep -nOtouch a"],
    ["behind other letters", "git rebase -fx 'touch x' HEAD~1"],
    ["behind other letters", "git clone -qu 'touch x' . y"],
    ["behind other letters", "git difftool -yx touch"],
    ["behind other letters", "sed -ni s/a/b/ a"],
    ["behind other letters", "ssh -vo ProxyCommand=touch a"],
    ["behind other letters", "env '-iStouch x' git"],
    ["without a dash", "tar cIf touch a.tar a"],
    ["behind the flags of a script", "sed s/a/touch/ge a"],
    ["behind another delimiter", "sed 's#a#touch x#e;p' a"],
    ["behind an option of Git itself", "git -C sub config core.pager touch"],
    ["behind an option of Git itself", "git --work-tree . clone -u touch . y"],
    ["as a setting", "git config protocol.ext.allow always"],
    ["as a setting", "git config submodule.a.update '!touch x'"],
    ["as a setting", "git config --rename-section user alias"],
    ["from a folder of the model's", "git --git-dir=sub status"],
    ["from a folder of the model's", "git init --separate-git-dir=sub a"],
    ["as what a subcommand is for", "git merge-index touch -a"],
  ])("%s: %s", (_how, line) => {
    expect(checkCommand(line, policy)).toMatchObject({ allowed: false });
  });

  test.each([
    "git log -p -5 --text",
    "git add -p a",
    "git switch -c topic",
    "git checkout -b daemon",
    "git -C sub push -u origin main",
    "git config --get remote.origin.url",
    "git config user.name Ann",
    "git commit -am 'Explain --exec and -O'",
    "sed -n 1,20p src/a.ts",
    "sed -e s/foo/example/g a.ts",
    "sed 's|a|b|' a.ts",
    "tar xzf a.tgz --checkpoint=9",
    "tar cf a.tar IMAGES",
    "sort -rnk2 a",
    "timeout -s KILL 5 git status",
  ])("but runs: %s", (line) => {
    expect(checkCommand(line, policy)).toMatchObject({ allowed: true });
  });
});

test("compound commands without a list go to the shell as they are", () => {
  const policy = { allowShell: true, allowCompoundCommands: true };
  expect(checkCommand("echo $HOME > x", policy)).toEqual({ allowed: true, shellLine: "echo $HOME > x" });
});
