import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { processorMs } from "../../testing/processor-time.ts";
import { checkCommand } from "./check-command.ts";
import { faultsOfCommandList } from "./command-list.ts";
import { attackedPrograms, type HostileForms } from "./hostile-forms.suite.ts";

const corpus: HostileForms = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../../tests/security/known-forms.json"), "utf8"),
);

/** The reason for a refusal, or the paths of the known forms; none for a line that the list allows as written. */
function decide(line: string, policy: Parameters<typeof checkCommand>[1] = {}): string | readonly string[] {
  const decision = checkCommand(line, {
    allowShell: true,
    allowedCommands: attackedPrograms(corpus),
    ...policy,
  });
  if (!decision.allowed) return decision.reason;
  return "commands" in decision
    ? decision.commands.flatMap(({ known }) => known?.paths.map(({ path }) => path) ?? [])
    : [];
}

/** Whether the line is refused by its words, or by its paths. */
function isRefused(decision: string | readonly string[]): boolean {
  return typeof decision === "string" || decision.some((path) => path.startsWith("/") || path.includes(".."));
}

describe.each(Object.entries(corpus.attacks))("of %s", (_group, lines) => {
  test.each(lines)("%s is refused", (line) => {
    expect(isRefused(decide(line))).toBe(true);
    expect(isRefused(decide(line, { allowedCommands: [] }))).toBe(true);
  });
});

/** Everyday commands, by program. */
const daily: readonly string[] = [
  "git status --short --branch",
  "git status -sb -uno",
  "git status --porcelain=v2 -z",
  "git log --oneline -20",
  "git log -n 5 --format='%h %an %s' --since='2 weeks ago' -- src",
  "git log -p -S'needle' --all --graph --decorate --stat",
  "git log -L 1,20:src/a.ts",
  "git log main..HEAD --no-merges --author=Ann",
  "git log --follow -p -- a.txt",
  "git log --format=%H HEAD~3...HEAD",
  "git --no-pager diff --stat HEAD~1",
  "git diff --cached -U5 -w -- src/a.ts",
  "git diff --name-only main...topic",
  "git diff -M --word-diff=color HEAD",
  "git diff --no-index a.txt b.txt",
  "git show HEAD:src/a.ts",
  "git show --stat --oneline 'stash@{0}'",
  "git blame -L 10,20 -w src/a.ts",
  "git branch",
  "git branch -vv",
  "git branch -a --sort=-committerdate --format='%(refname:short)'",
  "git branch --list 'feat/*'",
  "git branch --show-current",
  "git branch --merged main",
  "git branch -r --contains HEAD",
  "git tag -l 'v*' --sort=-v:refname",
  "git tag -n1",
  "git rev-parse --abbrev-ref HEAD",
  "git rev-parse --show-toplevel",
  "git rev-parse --short HEAD~2",
  "git ls-files -o --exclude-standard",
  "git ls-files '*.ts'",
  "git ls-tree -r --name-only HEAD",
  "git cat-file -p HEAD",
  "git cat-file -t HEAD",
  "git grep -n -e alpha --and -e beta",
  "git grep -nI 'TODO' -- src",
  "git grep '/api/users'",
  "git describe --tags --always --dirty",
  "git shortlog -sne --no-merges",
  "git reflog",
  "git reflog show -5",
  "git remote -v",
  "git remote get-url origin",
  "git config --get user.name",
  "git config user.email",
  "git config --list --show-origin",
  "git stash list",
  "git stash show -p 'stash@{0}'",
  "git merge-base main HEAD",
  "git name-rev HEAD",
  "git rev-list --count HEAD",
  "git for-each-ref --format='%(refname)' refs/heads",
  "git diff-tree --no-commit-id --name-only -r HEAD",
  "git count-objects -vH",
  "git check-ignore -v a.log",
  "git check-attr -a a.txt",
  "git worktree list --porcelain",
  "git show-ref --heads",
  "git symbolic-ref --short HEAD",
  "git range-diff main topic@{1} topic",
  "git apply --check fix.patch",
  "git apply --stat fix.patch",
  "git notes show HEAD",
  "git version",
  "git --version",
  "sed -n 1,20p src/a.ts",
  "sed -n '10,$p' a.txt",
  "sed -ne '/start/,/end/p' a.txt",
  "sed 's|a|b|g' a.txt",
  "sed -E 's/([a-z]+) ([a-z]+)/\\2 \\1/gI; s#x#y#2p' a.txt",
  "sed -e s/foo/example/g -e '/^$/d' a.ts",
  "sed '$!N;s/\\n/ /;P;D' a.txt",
  "sed ':a;N;$!ba;s/\\n/ /g' a.txt",
  "sed -n '/a/{=;p;}' a.txt",
  "sed '1!G;h;$!d' a.txt",
  "sed '5q' a.txt",
  "sed -n '$=' a.txt",
  "sed '0~3d' a.txt",
  "sed 'y/abc/xyz/' a.txt",
  "sed 's/[^[:space:]]*\\/x/\\&/' a.txt",
  "sed '/^#/!p' a.txt",
  "sed --quiet --regexp-extended 's/a+/b/p' a.txt",
  "find . -name '*.ts' -not -path './node_modules/*'",
  "find src tests -type f \\( -name '*.ts' -o -name '*.js' \\) -newer a.txt -print0",
  "find . -maxdepth 2 -type d -printf '%p\\n'",
  "find . -mtime -1 -size +10k -ls",
  "find . -path ./x -prune -o -type l -print",
  "grep -rn --include='*.ts' -e foo src",
  "grep -nE 'foo|bar' a.txt",
  "grep -c alpha a.txt b.txt",
  "grep -A3 -B 3 -i alpha a.txt",
  "grep -5 alpha a.txt",
  "grep -v -- -x a.txt",
  "grep -e -x a.txt",
  "grep '/api/' a.txt",
  "grep -rl alpha .",
  "grep --color=never -oP '(?<=a)b' a.txt",
  'rg -n "fn \\w+\\(" src',
  "rg -t ts -g '!*.test.ts' alpha",
  "rg --files -g '*.md'",
  "rg -C3 --json alpha src",
  "rg -uu -l alpha",
  "fd -e ts -H alpha src",
  "sort -rnk2 a.txt",
  "sort -t, -k1,1 -k2,2n -u a.csv",
  "sort a.txt b.txt -r",
  "uniq -c a.txt",
  "uniq -c -d",
  "cut -d: -f1,3 a.txt",
  "tr -d '\\n'",
  "tr a-z A-Z",
  "head -5 a.txt",
  "head -n -2 a.txt",
  "tail -n +3 a.txt",
  "tail -20 a.txt",
  "cat -n 'file with spaces.txt' -- -dash.txt",
  "wc -l a.txt b.txt",
  "diff -u a.txt b.txt",
  "diff -rq --no-dereference a b",
  "cmp -s a.txt b.txt",
  "comm -12 a.txt b.txt",
  "paste -d, a.txt b.txt",
  "join -t, -1 2 -2 1 a.csv b.csv",
  "nl -ba a.txt",
  "tac a.txt",
  "fold -w 80 -s a.txt",
  "column -t -s, a.csv",
  "od -A d -t x1 -N 16 a.bin",
  "hexdump -C -n 64 a.bin",
  "xxd -l 32 a.bin",
  "xxd -p -c8 a.bin",
  "strings -n 8 a.bin",
  "base64 -w0 a.bin",
  "md5sum a.txt",
  "shuf -n 3 a.txt",
  "jq '.scripts.test' package.json",
  "jq -r '.dependencies | keys[]' package.json",
  "jq -n --arg a b '{env: $a, x: .env}'",
  "jq --slurpfile o other.json '. + $o[0]' package.json",
  "ls -la",
  "ls -lhtr --color=never src tests",
  "ls -1 -R src",
  "tree -L 2 -I node_modules",
  "du -sh src",
  "du -h --max-depth=1",
  "df -h .",
  "stat -c '%s %n' a.txt",
  "file -b --mime-type a.bin",
  "tar -tzf a.tgz",
  "tar tvf a.tar",
  "date +%Y-%m-%d",
  "date -u -d '1 day ago' +%s",
  "test -f a.txt",
  "readlink -f a.txt",
  "curl -sSfL -m 10 https://example.org/a",
  "curl -I -H 'Accept: text/html' https://example.org",
  "node --version",
  "npm ls --depth=0",
  "timeout 10s git log",
  "env git status",
  "nice -n 10 rg alpha",
];

const others =
  "pwd echo printf seq basename dirname which id uname whoami sleep printenv true false test expr tr df".split(
    " ",
  );

test.each(daily)("%s runs", (line) => {
  expect(typeof decide(line, { allowedCommands: [...attackedPrograms(corpus), ...others] })).toBe("object");
});

test.each([
  [
    "pwd -P",
    "echo -n '$HOME' `x`".replaceAll("`", "'"),
    "printf '%s\\n' a",
    "seq 1 2 9",
    "test -n a",
    "sleep 1",
  ],
  [
    "basename a/b.ts .ts",
    "dirname a/b",
    "which node",
    "id -u",
    "uname -a",
    "printenv HOME",
    "true",
    "expr 1 + 2",
  ],
])("commands that only print information run: %s, …", (...lines) => {
  for (const line of lines) expect(Array.isArray(decide(line, { allowedCommands: [] })), line).toBe(true);
});

const writing: readonly string[] = [
  "git add -A",
  "git add src/a.ts",
  "git commit -am 'Explain --exec and -O'",
  "git commit --amend --no-edit",
  "git switch -c topic",
  "git checkout -b topic origin/main",
  "git checkout -- a.txt",
  "git restore --staged a.txt",
  "git branch -d old",
  "git branch topic",
  "git tag -a v1 -m 'One'",
  "git merge --no-ff -m 'Merge' topic",
  "git rebase --onto main old topic",
  "git rebase --continue",
  "git stash push -m wip -- a.txt",
  "git stash pop",
  "git mv a.txt b.txt",
  "git rm --cached a.txt",
  "git reset --hard HEAD~1",
  "git revert --no-edit HEAD",
  "git cherry-pick -x abc",
  "git config user.name Ann",
  "git config branch.main.rebase true",
];

test.each(writing)("%s runs if the list names it and the agent has allowWrite", (line) => {
  const name = line.split(" ").slice(0, 2).join(" ");
  expect(Array.isArray(decide(line, { allowedCommands: [name], allowWrite: true }))).toBe(true);
  expect(Array.isArray(decide(line, { allowedCommands: [], allowWrite: true }))).toBe(true);
  expect(decide(line, { allowedCommands: [name] })).toContain("allowWrite");
  expect(decide(line, { allowedCommands: ["git"], allowWrite: true })).toContain(name);
});

test.each([
  "git fetch --all --prune",
  "git pull --rebase origin main",
  "git push -u origin main",
  "git push --force-with-lease",
  "git clone --depth 1 https://example.org/a.git sub",
  "git clone git@example.org:a/b.git",
  "git ls-remote --tags origin",
])("%s runs only if the list names it", (line) => {
  const name = line.split(" ").slice(0, 2).join(" ");
  expect(Array.isArray(decide(line, { allowedCommands: [name], allowWrite: true }))).toBe(true);
  expect(decide(line, { allowedCommands: [], allowWrite: true })).toContain("connects");
});

test.each([
  ["git push --receive-pack=x origin", "--receive-pack=x"],
  ["git push ./local.git main", "./local.git"],
  ["git fetch 'ext::sh -c x'", "ext::sh"],
  ["git clone ../x y", "../x"],
  ["git clone x y", "x"],
  ["git clone -c a=b https://example.org/a", "-c"],
  ["git pull --upload-pack=x", "--upload-pack=x"],
  ["git commit --trailer=a", "--trailer=a"],
  ["git commit -S -m x", "-S"],
  ["git merge -s ./evil topic", "./evil"],
  ["git merge -X subtree=a topic", "subtree=a"],
  ["git rebase -i HEAD~2", "-i"],
  ["git rebase --exec=x main", "--exec=x"],
  ["git checkout -p", "-p"],
  ["git checkout --recurse-submodules main", "--recurse-submodules"],
  ["git stash push -a", "-a"],
  ["git rm 'src/*'", "src/*"],
  ["git config core.hooksPath x", "core.hooksPath"],
  ["git config alias.x '!x'", "alias.x"],
  ["git config --unset core.hooksPath", "core.hooksPath"],
  ["git config --global user.name x", "--global"],
  ["git tag -s v1", "-s"],
])("%s is refused although the list names its subcommand, and the refusal names %s", (line, word) => {
  const policy = { allowedCommands: [line.split(" ").slice(0, 2).join(" ")], allowWrite: true };
  expect(decide(line, policy)).toContain(word);
});

test("a refusal names the refused option, known or not, and suggests an alternative", () => {
  const programs = [
    "git log",
    "git diff",
    "sort",
    "uniq",
    "grep",
    "rg",
    "find .",
    "sed p",
    "ls",
    "tar -tf a",
    "jq .",
    "curl",
  ];
  const option = fc.stringMatching(/^--?[a-z][a-z-]{0,12}$/);
  fc.assert(
    fc.property(fc.constantFrom(...programs), option, (program, word) => {
      const reason = decide(`${program} ${word}`, {
        allowedCommands: programs.map((each) => each.split(" ")[0] ?? ""),
      });
      if (typeof reason !== "string") return;
      // The refusal quotes the unknown letter of a group, or the invalid value.
      const quoted = [...reason.matchAll(/"([^"]*)"/g)].map(([, text = ""]) => text);
      expect(quoted.some((text) => word.includes(text.replace(/^-(?=[a-z]$)/, "")))).toBe(true);
      expect(reason).toMatch(/known|value|script|needs|operand|takes|language|number/);
    }),
  );
});

test("a decision over a long line takes linear time", () => {
  const timeOf = (count: number): number => {
    const line = `sed ${"-e 's/a/b/;/x/d' ".repeat(count)} a`;
    const started = processorMs();
    for (let index = 0; index < 5; index += 1) decide(line, { allowedCommands: ["sed"] });
    return processorMs() - started;
  };
  timeOf(100);
  expect(timeOf(3_000)).toBeLessThan(1_500);
});

test("list entries that allow nothing are reported with an alternative", () => {
  const faults = faultsOfCommandList({
    allowedCommands: [
      "git",
      "npm test",
      "npm",
      "awk *",
      "git comit",
      "git commit",
      "cp",
      "ls | cat",
      "echo $HOME",
      "",
      "pytest",
      { command: "node", unsafe: true },
      { command: "make" },
    ],
  });
  expect(faults).toEqual([
    expect.stringMatching(/^"npm" runs nothing.*"npm test".*\{ command: "npm", unsafe: true \}/),
    expect.stringMatching(/^"awk \*" runs nothing/),
    expect.stringMatching(/^"git comit".*did you mean git commit/),
    expect.stringMatching(/^"git commit" runs nothing without allowWrite/),
    expect.stringMatching(/^"cp" runs nothing without allowWrite/),
    expect.stringMatching(/^"ls \| cat" allows nothing: it is more than one command/),
    expect.stringMatching(/^"echo \$HOME" allows nothing: it has a substitution/),
    expect.stringMatching(/^"" allows nothing: it is empty/),
    expect.stringMatching(/^"make" runs nothing/),
  ]);
  expect(faultsOfCommandList({ allowedCommands: ["git commit", "cp"], allowWrite: true })).toEqual([]);
});

test("a dash as the option of a launcher is refused, because env would clear the environment of Git", () => {
  for (const line of [
    "env - git status",
    "timeout 5 env - git status",
    "env env - git log",
    "nice - git status",
  ])
    expect([line, isRefused(decide(line, { allowedCommands: [] }))]).toEqual([line, true]);
  expect(decide("env git status", { allowedCommands: [] })).toEqual([]);
});
