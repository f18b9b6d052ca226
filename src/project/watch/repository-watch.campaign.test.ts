import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";
import { indexOf } from "../project-index.ts";

test("whether files differ from the commit is known while the project is watched, and only then", async () => {
  await using repository = await createTemporaryRepository({ "CLAUDE.md": "# Rule\n", "src/a.ts": "1\n" });
  await repository.init();
  const first = await repository.commit("Begin", 1_700_000_000);
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  const current = () => indexOf(project).repository.current();
  const until = (state: ReturnType<typeof current>) =>
    expect.poll(current, { timeout: 50_000 }).toEqual(state);
  await sleep(400);
  expect(current()).toEqual({ commit: first });
  const watch = await project.watch();
  await until({ commit: first, dirty: false });
  await repository.write("src/a.ts", "2\n");
  await until({ commit: first, dirty: true });
  const second = await repository.commit("Change", 1_700_000_100);
  // The commit is right at once; the rest follows.
  expect(current()?.commit).toBe(second);
  await until({ commit: second, dirty: false });
  await repository.write("src/new.ts", "");
  await until({ commit: second, dirty: true });
  await watch.close();
  expect(current()).toEqual({ commit: second });
  await project.close();
});

test("a folder without Git has no state, also when it is watched", async () => {
  await using folder = await createTemporaryRepository({ "CLAUDE.md": "# Rule\n" });
  const project = await openProject({ root: folder.root, indexFile: ":memory:" });
  const watch = await project.watch();
  expect(indexOf(project).repository.current()).toBeUndefined();
  await folder.init();
  expect(indexOf(project).repository.current()).toBeUndefined();
  const commit = await folder.commit("Begin", 1_700_000_000);
  expect(indexOf(project).repository.current()).toMatchObject({ commit });
  await watch.close();
  await project.close();
});
