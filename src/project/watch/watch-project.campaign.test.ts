import { appendFileSync, mkdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";
import type { Project, ScanSummary } from "../project.ts";

interface Watched {
  readonly root: string;
  readonly project: Project;
  readonly summaries: ScanSummary[];
  readonly titles: () => string[];
}

async function watched(
  files: Record<string, string>,
  body: (watched: Watched) => Promise<void>,
): Promise<void> {
  await using repository = await createTemporaryRepository(files);
  const { root } = repository;
  const project = await openProject({ root, indexFile: ":memory:" });
  const summaries: ScanSummary[] = [];
  const watch = await project.watch((summary) => summaries.push(summary));
  try {
    const titles = (): string[] => [...project.specs.all()].map(({ title }) => title);
    await body({ root, project, summaries, titles });
  } finally {
    await watch.close();
    await project.close();
  }
}

async function until(holds: () => boolean): Promise<void> {
  await expect.poll(holds, { interval: 5 }).toBe(true);
}

const rule = (title: string): string => `## ${title}\n\ntext\n`;

test("a watcher reports a saved file, and queries return its new content", async () => {
  await watched({ "CLAUDE.md": rule("One") }, async ({ root, summaries, titles }) => {
    writeFileSync(join(root, "CLAUDE.md"), rule("Two"));
    await until(() => titles().join() === "Two");
    await until(() => summaries.length > 0);
    expect(summaries.at(-1)).toMatchObject({ parsed_files: 1, specs: 1 });
  });
});

test("an editor that writes a new file and renames it is followed", async () => {
  await watched({ "a/CLAUDE.md": rule("One") }, async ({ root, titles }) => {
    for (const title of ["Two", "Three", "Four"]) {
      writeFileSync(join(root, "a/.CLAUDE.md.swp"), rule(title));
      renameSync(join(root, "a/CLAUDE.md"), join(root, "a/CLAUDE.md~"));
      renameSync(join(root, "a/.CLAUDE.md.swp"), join(root, "a/CLAUDE.md"));
      unlinkSync(join(root, "a/CLAUDE.md~"));
      await until(() => titles().join() === title);
    }
  });
});

test("new folders are watched, deleted and renamed ones forgotten", async () => {
  await watched({ "CLAUDE.md": rule("Root") }, async ({ root, titles }) => {
    mkdirSync(join(root, "new/deep"), { recursive: true });
    writeFileSync(join(root, "new/deep/CLAUDE.md"), rule("Deep"));
    await until(() => titles().join() === "Root,Deep");
    writeFileSync(join(root, "new/deep/CLAUDE.md"), rule("Edited"));
    await until(() => titles().join() === "Root,Edited");
    renameSync(join(root, "new"), join(root, "moved"));
    await until(() => titles().join() === "Root,Edited");
    writeFileSync(join(root, "moved/deep/CLAUDE.md"), rule("Moved"));
    await until(() => titles().join() === "Root,Moved");
    rmSync(join(root, "moved"), { recursive: true });
    await until(() => titles().join() === "Root");
  });
});

test("an edit of an ignore file hides what it names, and shows it again", async () => {
  await watched({ "a/CLAUDE.md": rule("A"), "b/CLAUDE.md": rule("B") }, async ({ root, titles }) => {
    writeFileSync(join(root, ".gitignore"), "a/\n");
    await until(() => titles().join() === "B");
    writeFileSync(join(root, "a/CLAUDE.md"), rule("Hidden"));
    writeFileSync(join(root, ".gitignore"), "");
    await until(() => titles().join() === "Hidden,B");
    writeFileSync(join(root, "a/CLAUDE.md"), rule("Seen"));
    await until(() => titles().join() === "Seen,B");
  });
});

test("hundreds of changes at once are few passes", async () => {
  const names = Array.from({ length: 300 }, (_, index) => `p${String(index).padStart(3, "0")}`);
  const files = Object.fromEntries(names.map((name) => [`${name}/CLAUDE.md`, rule("Old")]));
  await watched(files, async ({ root, summaries, titles }) => {
    for (const name of names) writeFileSync(join(root, name, "CLAUDE.md"), rule("New"));
    await until(() => titles().every((title) => title === "New"));
    expect(summaries.length).toBeLessThan(40);
  });
});

test("a file that is named by a block is noticed when it appears", async () => {
  await watched({ "CLAUDE.md": "## A\n\nSee `src/x.ts`.\n", "src/y.ts": "" }, async ({ root, project }) => {
    writeFileSync(join(root, "src/x.ts"), "");
    await until(() => project.specs.get("fw_c-a")?.metadata.code_refs?.[0] === "src/x.ts");
  });
});

test("a commit brings new dates", async () => {
  await using repository = await createTemporaryRepository({ "CLAUDE.md": rule("A") });
  await repository.init();
  await repository.commit("one", 1_700_000_000);
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  const watch = await project.watch();
  expect(project.datesOf("CLAUDE.md")?.last).toBe(1_700_000_000);
  await repository.write("CLAUDE.md", rule("B"));
  await repository.commit("two", 1_700_000_500);
  await until(() => project.datesOf("CLAUDE.md")?.last === 1_700_000_500);
  await watch.close();
  await project.close();
});

test("a commit that Git makes only after it has noted it brings new dates, too", async () => {
  await using repository = await createTemporaryRepository({ "CLAUDE.md": rule("A") });
  await repository.init();
  await repository.commit("one", 1_700_000_000);
  const branch = (await repository.git("symbolic-ref", "HEAD")).trim();
  const before = (await repository.git("rev-parse", "HEAD")).trim();
  await repository.write("CLAUDE.md", rule("B"));
  await repository.commit("two", 1_700_000_500);
  const after = (await repository.git("rev-parse", "HEAD")).trim();
  const reference = join(repository.root, ".git", branch);
  writeFileSync(reference, `${before}\n`);
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  const watch = await project.watch();
  appendFileSync(
    join(repository.root, ".git/logs/HEAD"),
    `${before} ${after} A <a@b> 1700000500 +0000\ttwo\n`,
  );
  // Long enough for the watch to have looked once.
  await setTimeout(50);
  writeFileSync(reference, `${after}\n`);
  await until(() => project.datesOf("CLAUDE.md")?.last === 1_700_000_500);
  await watch.close();
  await project.close();
});

test("after it is closed, a watch does nothing", async () => {
  await using repository = await createTemporaryRepository({ "CLAUDE.md": rule("A") });
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  let calls = 0;
  const watch = await project.watch(() => {
    calls += 1;
  });
  await watch.close();
  await repository.write("CLAUDE.md", rule("B"));
  await setTimeout(100);
  expect(calls).toBe(0);
  expect(project.specs.get("fw_c-b")).toBeUndefined();
  await project.close();
});

test("a project that is closed while its watch starts, or before, leaves nothing that keeps the process alive", async () => {
  await using repository = await createTemporaryRepository({ "CLAUDE.md": rule("One") });
  const watchers = (): number =>
    process.getActiveResourcesInfo().filter((name) => name === "FSEventWrap").length;
  const before = watchers();
  const { root } = repository;
  const project = await openProject({ root });
  const open = await project.watch();
  expect(watchers()).toBeGreaterThan(before);
  const starting = project.watch();
  const refused = expect(starting).rejects.toThrow("The project was closed.");
  await project.close();
  await refused;
  await until(() => watchers() <= before);
  await open.close();
  await expect(project.watch()).rejects.toThrow("The project was closed.");
  await until(() => watchers() <= before);
});

test("a project that is read in the background watches the folders that its first pass finds", async () => {
  const many = Array.from({ length: 1_500 }, (_, at) => [
    `.cursor/rules/f${at % 300}/r${at}.mdc`,
    rule(`Rule ${at}`),
  ]);
  await using repository = await createTemporaryRepository(Object.fromEntries(many));
  // Its first pass takes longer than it waits for one.
  const project = await openProject({ root: repository.root, background: true });
  expect(project.indexing()).toBeDefined();
  const summaries: ScanSummary[] = [];
  // Before the first pass has found a folder.
  const watch = await project.watch((summary) => summaries.push(summary));
  await project.ready();
  const seen = summaries.length;
  await repository.write(".cursor/rules/f0/r0.mdc", rule("Second"));
  await until(() => summaries.length > seen);
  await watch.close();
  await project.close();
});
