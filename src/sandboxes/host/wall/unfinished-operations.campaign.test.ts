import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { openRepository } from "./repository.suite.ts";
import { createFolder, wallTest } from "./walled.suite.ts";

const folder = await createFolder();
const access = { write: true };

wallTest("a rebase whose steps run programs is not taken over", async () => {
  const { run, git, root, ran } = await openRepository(folder);
  const { stderr } = await run(
    "git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m second; GIT_SEQUENCE_EDITOR=true git -c user.name=a -c user.email=a@b.c rebase -q -x false -x ./run.sh HEAD~1",
    { access },
  );
  expect(stderr).toContain("its next steps run programs");
  await readFile(join(root, ".git/rebase-merge/git-rebase-todo")).then(
    () => expect.unreachable(),
    () => undefined,
  );
  expect(() => git("rebase", "--continue")).toThrow();
  expect(ran()).toBe(false);
});

const unfinished: Readonly<Record<string, readonly [begin: string, change: string, end: readonly string[]]>> =
  {
    "the strategy of a rebase": [
      "git checkout -q topic; git rebase main",
      "echo x/run.sh > .git/rebase-merge/strategy",
      ["rebase", "--continue"],
    ],
    "the strategy of a cherry-pick": [
      "git checkout -q main; git cherry-pick topic~1 topic",
      "printf '[options]\\n\\tstrategy = x/run.sh\\n' > .git/sequencer/opts",
      ["cherry-pick", "--continue"],
    ],
    "a step of a rebase": [
      "git checkout -q topic; git rebase main",
      "printf '\\tx\\t./run.sh\\n' >> .git/rebase-merge/git-rebase-todo",
      ["rebase", "--continue"],
    ],
  };

for (const [name, [begin, change, end]] of Object.entries(unfinished)) {
  wallTest(`${name} is taken over, unless it is a program of the work tree`, async () => {
    for (const isHostile of [false, true]) {
      const { run, git, root, ran } = await openRepository(folder);
      git("config", "user.name", "a");
      git("config", "user.email", "a@b.c");
      git("config", "core.editor", "true");
      git("checkout", "--quiet", "-b", "topic");
      await writeFile(join(root, "a.txt"), "topic");
      git("commit", "--quiet", "--all", "--message=it's topic!");
      await writeFile(join(root, "b.txt"), "topic");
      git("add", ".");
      git("commit", "--quiet", "--message=topic 2");
      git("checkout", "--quiet", "main");
      await writeFile(join(root, "a.txt"), "main");
      git("commit", "--quiet", "--all", "--message=main");
      const { stderr } = await run(
        `mkdir git-merge-x; cp run.sh git-merge-x; { ${begin}; } >/dev/null 2>&1; ${isHostile ? change : "true"}`,
        { access },
      );
      expect(stderr).toMatch(isHostile ? /was not taken over/ : /^$/);
      await writeFile(join(root, "a.txt"), "both");
      git("add", "a.txt");
      const finish = (): string => git("-c", "core.editor=true", ...end);
      if (isHostile) {
        try {
          finish();
        } catch {
          // Without its steps, Git cannot go on.
        }
      } else {
        finish();
        expect(git("log", "--format=%s", "-3")).toBe("topic 2\nit's topic!\nmain\n");
      }
      expect(ran()).toBe(false);
    }
  });
}
