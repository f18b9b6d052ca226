import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { testFolder } from "../../testing/test-folder.ts";
import { runUnwalled } from "./run-unwalled.suite.ts";

let base: string;
let root: string;

function write(path: string, content: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
}

beforeEach(() => {
  base = testFolder(onTestFinished);
  root = join(base, "workspace");
  write("a.txt", "alpha\n");
  write("sub/b.txt", "beta\n");
  write("other/a.txt", "gamma\n");
  writeFileSync(join(base, "outside.txt"), "OUTSIDE\n");
});

/** Runs a command without isolation; returns what it printed, or the reason of its refusal. */
async function run(command: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const result = await runUnwalled(root, command, { policy: { allowCompoundCommands: false }, env });
  return typeof result === "string" ? `refused: ${result}` : result.stdout + result.stderr;
}

test.each([
  "diff a.txt sub",
  "diff sub a.txt",
  "diff a.txt sub/",
  "diff sub/link other",
  "diff sub other",
  "diff --no-dereference sub other",
  "diff --no-dereference a.txt sub",
  "diff -r sub other",
  "diff -r --no-dereference sub other",
  "diff -N a.txt sub",
  "diff - sub",
  "cmp a.txt sub",
  "comm a.txt sub",
  "cat sub/a.txt",
  "cp sub/a.txt copy",
  "cp -r sub copy",
  "cp -a sub/. copy",
  "grep -r OUT .",
  "grep -d recurse OUT sub",
  "find -L sub",
  "find sub -follow",
  "ls -LR sub",
  "tar -chf - .",
  "tar -c -f - sub",
  "tar -c -f - -T list",
  "rg -L OUT .",
  "wc --files0-from=list",
  "sort --files0-from=list",
  "du --files0-from=list",
  "file -f list",
  "git diff --no-index a.txt sub",
  "git diff --no-index sub other",
  "test -f sub/a.txt",
  "which ../outside.txt",
])("%s prints nothing that a link leads to", async (line) => {
  symlinkSync(join(base, "outside.txt"), join(root, "sub/a.txt"));
  symlinkSync(base, join(root, "sub/link"));
  write("list", `${base}/outside.txt\0`);
  expect(await run(line)).not.toContain("OUTSIDE");
  expect(
    existsSync(join(root, "copy")) && (await run("cat copy copy/a.txt copy/sub/a.txt")).includes("OUTSIDE"),
  ).toBe(false);
});

test.each([
  "cp -r sub other",
  "cp -R sub/. other/sub",
  "cp -a sub other",
  "cp -r sub/deep other/sub",
  "cp a.txt other/sub",
  "cp a.txt other/sub/a.txt",
])("%s writes through no link", async (line) => {
  write("sub/a.txt", "WRITTEN\n");
  write("sub/deep/a.txt", "WRITTEN\n");
  write("a.txt", "WRITTEN\n");
  write("package.json", "{}\n");
  mkdirSync(join(root, "other/sub/deep"), { recursive: true });
  symlinkSync(join(base, "outside.txt"), join(root, "other/sub/a.txt"));
  symlinkSync("../../../package.json", join(root, "other/sub/deep/a.txt"));
  expect(await run(line)).toContain("refused");
  expect(readFileSync(join(base, "outside.txt"), "utf8")).toBe("OUTSIDE\n");
  expect(readFileSync(join(root, "package.json"), "utf8")).toBe("{}\n");
});

test.each(["../outside.txt", "./a.txt", "/etc/passwd", ".hidden", "\\outside.txt"])(
  "tar -c does not read the date of a file: %s",
  async (path) => {
    expect(await run(`tar -c --mtime='${path}' -f packed.tar a.txt`)).toMatch(/^refused: .*--mtime/);
    expect(await run(`tar -c --mtime '${path}' -f packed.tar a.txt`)).toMatch(/^refused: .*--mtime/);
    expect(await run("tar -c --mtime='2020-02-03 00:00Z' -f packed.tar a.txt")).toBe("");
    expect(await run("tar -tv --full-time -f packed.tar")).toContain("2020-02-03");
  },
);

test("files and folders without links are compared, copied and packed", async () => {
  write("sub/a.txt", "beta\n");
  write("sub/.env.example", "KEY=\n");
  expect(await run("diff a.txt sub/a.txt")).toContain("< alpha");
  expect(await run("diff -r --no-dereference sub other")).toContain("> gamma");
  expect(await run("diff --no-dereference a.txt other")).toContain("> gamma");
  expect(await run("cp -r sub other")).toBe("");
  expect(await run("cp -r sub other")).toBe("");
  expect(readFileSync(join(root, "other/sub/b.txt"), "utf8")).toBe("beta\n");
  expect(await run("tar czf packed.tgz sub")).toBe("");
  expect(await run("tar tzf packed.tgz")).toContain("sub/b.txt");
  expect(await run("tar cfz packed.tgz sub")).toContain("refused");
  expect(await run("cat sub/.env.example")).toBe("KEY=\n");
});

test.each([
  ["grep -rh '' ."],
  ["grep -rh --include=.env '' ."],
  ["grep -rh --include='.e*' -e '' -- ."],
  ["egrep -r '' sub"],
  ["fgrep -d recurse '' sub"],
  ["git grep --untracked --no-exclude-standard -h ''"],
  ["git grep --untracked -h -e '' -- ."],
  ["git grep -h '' "],
  ["git --glob-pathspecs grep --untracked --no-exclude-standard -h ''"],
  ["git --literal-pathspecs grep --untracked --no-exclude-standard -h ''"],
  ["git diff --no-index sub other"],
  ["git diff --no-index other sub"],
  ["git diff --no-index a.txt sub/.env.local"],
  ["diff -r --no-dereference -N sub other"],
  ["diff --no-dereference -N sub other"],
  ["tar -cf - ."],
  ["tar cf - sub"],
  ["tar -c -f packed.tar . sub", "cat packed.tar"],
  ["git add -A -f", "git show :.env", "git diff --cached"],
  ["git add -f .", "git diff --cached"],
  ["git add -f sub", "git diff --cached"],
  ["git add -A", "git diff --cached", "git stash", "git stash show -p"],
  ["git add '*'", "git diff --cached"],
  ["git add -f sub/.env.local", "git diff --cached"],
  ["git add -N -f .", "git diff"],
  [
    "git add -A -f",
    "git commit -qm x",
    "git log -p -1",
    "git show HEAD:.env",
    "git cat-file -p HEAD:sub/.env.local",
  ],
  ["cp -r sub copy", "grep -r '' copy", "cat copy/.env.local"],
  ["cp sub/.env.local copy"],
  ["cat .ENV"],
  ["jq -R . .env"],
  ["git show HEAD:tracked/.env"],
  ["git cat-file -p HEAD:tracked/.env"],
  ["git show :tracked/.env"],
  ["git grep -h '' HEAD"],
])("%j prints no file of secrets", async (...lines) => {
  const git = (...args: readonly string[]): unknown =>
    execFileSync("git", ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", ...args], { cwd: root });
  git("init", "-q", "-b", "main");
  git("config", "user.name", "Ann");
  git("config", "user.email", "ann@example.org");
  write("tracked/.env", "TRACKED=SECRET-3\n");
  git("add", "-A");
  git("commit", "-qm", "One");
  write(".gitignore", ".env\n");
  write(".env", "KEY=SECRET-1\n");
  write("sub/.env.local", "DBURL=SECRET-2\n");
  write("sub/.ENV", "KEY=SECRET-4\n");
  write("sub/.envrc", "export KEY=SECRET-5\n");
  for (const line of lines) expect(await run(line), line).not.toContain("SECRET-");
});

test("git add adds everything else, and the samples of variables", async () => {
  execFileSync("git", ["init", "-q"], { cwd: root });
  write(".env", "KEY=SECRET\n");
  write(".env.example", "KEY=\n");
  write("sub/.env.local", "KEY=SECRET\n");
  expect(await run("git add -A")).toBe("");
  expect(await run("git ls-files")).toBe(".env.example\na.txt\nother/a.txt\nsub/b.txt\n");
  expect(await run("git add")).toContain("Nothing specified");
});

test.each([
  "jq -n '$ ENV'",
  "jq -n '$\tENV'",
  "jq -n '$\nENV'",
  "jq -n '$#x\nENV'",
  "jq -n '$#\\\nx\nENV'",
  "jq -n '\"a\" , $ ENV'",
  'jq -n \'"a\\(1)b", $ ENV, "c"\'',
  "jq -n '# it\"s\n$ ENV #\"'",
  "jq -n '[$ ENV.TOKEN]'",
  "jq -n '{$ENV}'",
  "jq -n '$__prog_args'",
  "jq -n env",
  "jq -n '{env:env}'",
  "jq -n '[env|.TOKEN]'",
  "jq -n '\"\\(env.TOKEN)\"'",
  "jq -n 'try ([1]|.[env:]) catch .'",
  "jq -nf filter.jq",
  "jq -n -L . 'import \"m\" as m; m::x'",
  "jq -n 'import \"m\" as m; m::x'",
  "jq -n 'include \"m\"; x'",
])("%s prints no variable", async (line) => {
  write("filter.jq", "$ENV");
  write("m.jq", "def x: $ENV;");
  expect(await run(line, { TOKEN: "GRANTED" })).not.toContain("GRANTED");
});

test("a filter may name fields, keys and variables as it likes", async () => {
  write("a.json", '{"env":{"include":7}}\n');
  expect(await run("jq .env.include a.json")).toBe("7\n");
  expect(await run("jq -c '{env: 1, a: .env.include}' a.json")).toBe('{"env":1,"a":7}\n');
  expect(await run(`jq -c '.env as $e | $e.include | [., "costs $5"]' a.json`)).toBe('[7,"costs $5"]\n');
  expect(await run(`jq '.["env"] | keys[] | test("^inc.*e$")' a.json`)).toBe("true\n");
});

test.each([
  "test ../outside.txt -nt a.txt",
  "test a.txt -ot ../outside.txt",
  "test /etc/passwd -ef a.txt",
  "test ! /etc/passwd -nt a.txt",
  "[ /etc/passwd -nt a.txt ]",
  "test a.txt -nt a.txt -a /etc/passwd -ot a.txt",
  "readlink -f out",
  "readlink -e out",
  "readlink -m out/x",
  "readlink --canonicalize out",
  "realpath out",
  "realpath -e out/b.txt",
  "realpath /etc/passwd",
  "realpath --relative-to=out a.txt",
])("%s is refused, because it looks outside of the workspace", async (line) => {
  mkdirSync(join(base, "place"));
  symlinkSync(join(base, "place"), join(root, "out"));
  expect(await run(line)).toContain("refused");
});

test("links and ages of files in the workspace can be seen", async () => {
  symlinkSync("../a.txt", join(root, "sub/link"));
  expect(await run("readlink sub/link")).toBe("../a.txt\n");
  expect(await run("readlink -f sub/link")).toBe(`${root}/a.txt\n`);
  expect(await run("realpath sub/link")).toBe(`${root}/a.txt\n`);
  expect(await run("test a.txt -nt sub/b.txt")).toBe("");
});

test.each([
  "jq -R --indent --arg . ../outside.txt 0 .",
  "jq -R --indent --rawfile . ../outside.txt 0 .",
  "jq -n --indent --arg env 7 0 .",
])("%s: jq takes the word after --indent as its value", async (line) => {
  const text = await run(line, { GRANTED: "granted-value" });
  expect(text).toMatch(/^refused: .*--indent/);
  expect(await run("jq -R --indent 2 . a.txt")).toBe('"alpha"\n');
});

test.each(["grep -rh -e '' -e -- .", "grep -rh --regexp '' --regexp -- ."])(
  "%s leaves out files of secrets, although a pattern is a double dash",
  async (line) => {
    write(".env", "SECRET=1\n");
    const text = await run(line);
    expect(text).toContain("alpha");
    expect(text).not.toContain("SECRET");
  },
);

test.each([
  "git diff",
  "git diff HEAD -- .",
  "git -C sub diff --cached HEAD",
  "git diff-files -p",
  "git diff-index -p HEAD",
  "git status -vv",
  "git commit --dry-run -va",
  "git commit -qam x",
  "git commit -qm x sub",
])("%s prints and keeps no changes of a file of secrets that Git tracks", async (line) => {
  const git = (...args: readonly string[]): string =>
    execFileSync("git", ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", ...args], {
      cwd: root,
      encoding: "utf8",
    });
  write("sub/.env", "KEY=placeholder\n");
  git("init", "-q");
  git("add", "-A");
  git("commit", "-qm", "One");
  write("sub/.env", "KEY=own-secret\n");
  write("a.txt", "changed\n");
  if (line.includes("--cached")) git("add", "-A");
  const text = await run(line);
  expect(text).not.toContain("own-secret");
  expect(text).toMatch(/commit|status/.test(line) ? /has changes and holds secrets/ : /changed/);
  expect(git("log", "-p")).not.toContain("own-secret");
  expect(await run("git commit --allow-empty -qm plain")).toMatch(
    line.includes("--cached") ? /has changes and holds secrets/ : /^$/,
  );
});

test.each([
  "cp -r templates/pkg packages",
  "cp -a templates/pkg packages/",
  "cp -r templates/pkg/. packages/pkg",
])("%s would replace a protected file below its target", async (line) => {
  write("templates/pkg/package.json", "{}");
  write("packages/pkg/package.json", '{"scripts":{}}');
  expect(await run(line)).toMatch(/refused: .*package\.json" is protected/);
  expect(readFileSync(join(root, "packages/pkg/package.json"), "utf8")).toBe('{"scripts":{}}');
});
