import { expect, test } from "vitest";
import { isTaken, refusalOf } from "../../../base/git-state-files.ts";

const id = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
const harmless: Readonly<Record<string, readonly string[]>> = {
  HEAD: ["ref: refs/heads/main\n", id],
  "refs/heads/a/b": [`${id}\n`],
  "packed-refs": [
    `# pack-refs with: peeled fully-peeled sorted \n${id} refs/heads/a-b/c.d\n${id} refs/tags/é@2\n^${id}\n`,
    `${id} refs/stash\n`,
  ],
  "logs/HEAD": [`${id} ${id} a <a@b.c> 1 +0000\tcommit: x; $(y)\n${id} ${id} a <a@b.c> 1 +0000\n`],
  "rebase-merge/git-rebase-todo": [
    `pick ${id} x\n\n# Rebase\n; other\nf -C ${id}\nmerge -C ${id} a # b\nb\n`,
  ],
  "rebase-merge/author-script": [
    "GIT_AUTHOR_NAME='it'\\''s'\nGIT_AUTHOR_EMAIL='a@b.c'\nGIT_AUTHOR_DATE='@1 +0000'\n",
  ],
  "rebase-merge/strategy": ["ort\n"],
  "rebase-merge/strategy_opts": [" --ours --diff-algorithm=patience", "'--theirs'\n"],
  "rebase-apply/apply-opt": [" '-p2' '--whitespace=fix'", ""],
  "sequencer/opts": ["[options]\n\tno-commit = true\n\tmainline = 1\n\tstrategy = recursive\n"],
  "sequencer/todo": [`revert ${id} x\n`],
  MERGE_RR: [`${id}\ta/b.txt\0`],
  BISECT_NAMES: ["\n", " 'a b' 'c'\n"],
};
const hostile: Readonly<Record<string, readonly string[]>> = {
  HEAD: ["--upload-pack=x", "ref: ../x\n"],
  "refs/heads/a": ["ref: config\n", "x"],
  [`refs/replace/${id}`]: [`${id}\n`],
  "packed-refs": [
    "x\n",
    ...[
      "../x",
      "refs/../x",
      "refs/heads/.x",
      "refs/heads/a..b",
      "refs/heads/a.lock/b",
      "refs/a\x1b",
      "HEAD",
    ].map((name) => `${id} ${name}\n`),
  ],
  "logs/HEAD": ["touch x\n"],
  "rebase-merge/git-rebase-todo": [
    "x ./run.sh",
    "pick a\n \texec\t./run.sh\n",
    "exec ./run.sh\r\n",
    "script x\n",
  ],
  "rebase-merge/done": ["x ./run.sh\n"],
  "sequencer/todo": ["x ./run.sh\n"],
  "rebase-merge/author-script": ["GIT_AUTHOR_NAME='a'; touch x\n", "PATH='x'\n"],
  "rebase-merge/strategy": ["x/run.sh\n", "ort\nx/run.sh"],
  "rebase-merge/strategy_opts": ["x", `${"--".repeat(5_000)}!`],
  "rebase-apply/apply-opt": [" '--directory=../x'", " '--unsafe-paths'"],
  "sequencer/opts": [
    "[options]\n\tstrategy = x/run.sh\n",
    "[options]\n\tgpg-sign = x\n",
    "[include]\n\tpath = x\n",
    "[options] strategy = x/run.sh\n",
  ],
  MERGE_RR: [`${id}\t../x\0`, `${id}\t.git/hooks/x\0`, "../x\ta\0"],
  BISECT_NAMES: ["$(touch x)\n", " 'a';x\n"],
  shallow: [`${id.repeat(2_000)}!`],
};

test("files of an unfinished operation have only contents for which Git starts no program of the work tree", () => {
  for (const [path, contents] of Object.entries(harmless))
    for (const content of contents)
      expect([path, content, refusalOf(path, Buffer.from(content))]).toEqual([path, content, undefined]);
  for (const [path, contents] of Object.entries(hostile))
    for (const content of contents)
      expect([path, content, refusalOf(path, Buffer.from(content)) !== undefined]).toEqual([
        path,
        content,
        true,
      ]);
});

test("other files are not taken over", () => {
  const names = [
    "rebase-merge/gpg_sign_opt",
    "rebase-apply/patch-merge-index",
    "rebase-merge/x",
    "sequencer/x",
    "BISECT_RUN",
    "config",
    "commondir",
    "refs/.x",
    "refs/a\nb",
  ];
  expect(names.filter(isTaken)).toEqual([]);
});
