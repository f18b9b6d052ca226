import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { createIgnoreScope } from "../../files/ignore-scope.ts";
import { rounds } from "../../testing/campaign.suite.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { createProjectIndex } from "../open-indexed-project.ts";
import { openProject } from "../open-project.ts";
import type { Candidate } from "../scan/read-folder.ts";
import { createSourceCatalog } from "../scan/source-catalog.ts";
import { createSourceReader } from "../scan/source-reader.ts";
import { IndexSession } from "../store/index-session.ts";
import { IndexPlace, writeMeta } from "../store/open-index.ts";
import { canApplyTo, IndexingState, SourceQueue } from "./index-pass.ts";
import { ProjectRefresh } from "./refresh-index.ts";

const packages = rounds(600, 900);
const files: Record<string, string> = { "CLAUDE.md": "## Root rule\n\ntext\n" };
for (let index = 0; index < packages; index += 1) {
  files[`p${index}/CLAUDE.md`] = `## Rule ${index}\n\ntext\n`;
  files[`p${index}/.cursor/rules/style.mdc`] = `---\nglobs: "*.ts"\n---\n## Style ${index}\n\ntext\n`;
}

test("during indexing a project answers, reports its progress, and reads the guidelines of a requested file first", async () => {
  await using repository = await createTemporaryRepository(files);
  const { root } = repository;
  const index = createProjectIndex({
    root,
    place: new IndexPlace(root, join(root, ".kit", "index.db")),
    catalog: createSourceCatalog(),
  });
  const pass = index.refresh();
  expect(index.indexing()).toEqual({ done: 0, total: 0 });
  expect(index.guidelineRecords()).toEqual([]);
  const required = `p${packages - 3}`;
  await index.ready(`${required}/src/a.ts`);
  // Far from all is read.
  expect(index.indexing()).toMatchObject({ total: 2 * packages + 1 });
  const indexedFiles = index.guidelineRecords().map(({ source_file }) => source_file);
  expect(indexedFiles.length).toBeLessThan(packages);
  expect(indexedFiles).toEqual(
    expect.arrayContaining(["CLAUDE.md", `${required}/CLAUDE.md`, `${required}/.cursor/rules/style.mdc`]),
  );
  await pass;
  expect(index.indexing()).toBeUndefined();
  await index.ready("any/file.ts");
  expect(index.guidelineRecords().length).toBe(2 * packages + 1);
  await index.close();
});

test("a pass that always loses to another process gets a turn to write", async () => {
  await using repository = await createTemporaryRepository({ "CLAUDE.md": "## A rule\n\ntext\n" });
  const { root } = repository;
  const catalog = createSourceCatalog();
  const options = { fingerprint: "1", rebuild: () => undefined };
  const place = new IndexPlace(root, join(root, ".kit", "index.db"));
  const session = new IndexSession({ ...options, place });
  const other = new IndexSession({ ...options, place });
  const results: string[] = [];
  let isFast = false;
  const readSource = createSourceReader(root);
  const passes = new ProjectRefresh({
    root,
    catalog,
    session,
    state: new IndexingState(),
    rules: () => ({ scope: createIgnoreScope({ outer: [], readText: () => "" }), outerRules: "" }),
    // The other process commits a change each time this one reads a file.
    readSource(path) {
      if (!isFast) return readSource(path);
      const { generation } = other.begin();
      const result = other.write({ generation, isVisible: true });
      if (result.kind === "written") other.committed(result.generation, {});
      results.push(result.kind);
      return readSource(path);
    },
  });
  await passes.run({});
  isFast = true;
  await repository.write("CLAUDE.md", "## Another rule\n\ntext\n");
  expect(await passes.run({})).toMatchObject({ parsed: 1 });
  expect(results).toEqual(["written", "written", "outdated"]);
  const { generation, database } = other.begin();
  expect(other.write({ generation, isVisible: true }).kind).toBe("written");

  // A killed process has left its turn behind.
  session.claimTurn("killed");
  expect(other.write({ generation: generation + 1, isVisible: true }).kind).toBe("outdated");
  writeMeta(database, "turn", JSON.stringify({ pass: "killed", until: Date.now() - 1 }));
  expect(other.write({ generation: generation + 1, isVisible: true }).kind).toBe("written");
  // The clock was set back after this turn was given.
  writeMeta(database, "turn", JSON.stringify({ pass: "killed", until: Date.now() + 3_600_000 }));
  expect(other.claimTurn("next")).toBe(true);
  await passes.close();
  session.close();
  other.close();
});

test("a project whose dates wait for another process is not indexing, and closes at once", async () => {
  await using repository = await createTemporaryRepository({ "CLAUDE.md": "## A rule\n\ntext\n" });
  const { root } = repository;
  await repository.init();
  await repository.commit("A rule", 1000);
  const options = { fingerprint: "1", rebuild: () => undefined };
  const place = new IndexPlace(root, join(root, ".kit", "index.db"));
  const session = new IndexSession({ ...options, place });
  const other = new IndexSession({ ...options, place });
  const begun = Promise.withResolvers<void>();
  // Between the pass and its dates, the other process begins to index.
  class State extends IndexingState {
    override end(): void {
      super.end();
      if (!other.claimTurn("other")) return;
      writeMeta(other.begin().database, "indexing", JSON.stringify({ done: 1, total: 9 }));
      begun.resolve();
    }
  }
  const state = new State();
  const passes = new ProjectRefresh({
    root,
    catalog: createSourceCatalog(),
    session,
    state,
    rules: () => ({ scope: createIgnoreScope({ outer: [], readText: () => "" }), outerRules: "" }),
    readSource: createSourceReader(root),
  });
  const run = passes.run({}).catch((error: unknown) => error);
  await begun.promise;
  await sleep(500);
  expect(state.progress).toBeUndefined();
  await state.wait("src/a.ts");
  expect(await Promise.race([passes.close(), sleep(1_000, "still waiting")])).toBeUndefined();
  expect(await run).toMatchObject({ message: "The project was closed." });
  session.close();
  other.close();
});

test("a pass over many files lets other work of the process in between", async () => {
  await using repository = await createTemporaryRepository(files);
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
  }, 1);
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  clearInterval(timer);
  expect(turns).toBeGreaterThan(5);
  await project.close();
});

test("ten thousand sources are put in order with pauses in between, guidelines first", async () => {
  const paths = Array.from({ length: 10_000 }, (_, at) => (at % 2 === 0 ? `p${at}/CLAUDE.md` : `p${at}.md`));
  const { isGuidelineFile } = createSourceCatalog();
  const candidates = paths.map((path) => ({ path }) as Candidate);
  let turns = 0;
  const turn = async (): Promise<void> => {
    turns += 1;
  };
  const queue = await SourceQueue.create(candidates, isGuidelineFile, turn);
  expect(turns).toBe(paths.length);
  const order = paths.map(() => queue.next()?.path);
  expect(order).toEqual([
    ...paths.filter(isGuidelineFile),
    ...paths.filter((path) => !isGuidelineFile(path)),
  ]);
});

test("a project closed in the middle of its first pass continues when it is opened again", async () => {
  await using repository = await createTemporaryRepository(files);
  const { root } = repository;
  const partialIndex = createProjectIndex({
    root,
    place: new IndexPlace(root, join(root, ".kit", "index.db")),
    catalog: createSourceCatalog(),
  });
  const pass = partialIndex.refresh();
  pass.catch(() => undefined);
  await partialIndex.ready("p1/a.ts");
  await partialIndex.close();
  await expect(pass).rejects.toThrow("closed");

  const project = await openProject({ root, background: true });
  await project.ready();
  expect(project.indexing()).toBeUndefined();
  const page = project.specs.query({ q: "text", limit: 1 });
  expect(page.total_count).toBe(2 * packages + 1);
  expect(page).not.toHaveProperty("indexing");
  expect((await project.refresh()).parsed_files).toBe(0);
  await project.close();
});

test("pages of specs and guidelines, impact and graph report that the project is still being indexed", async () => {
  await using repository = await createTemporaryRepository(files);
  const project = await openProject({ root: repository.root, indexFile: ":memory:", background: true });
  const indexing = project.indexing();
  const answers = [
    project.specs.query({ limit: 1 }),
    project.guidelines.list({ limit: 1 }),
    project.specs.impact({ files: ["a.ts"] }),
    project.specs.graph(),
  ];
  for (const answer of answers) expect(answer.indexing).toEqual(indexing);
  await project.ready();
  expect(project.guidelines.list({ limit: 1 })).not.toHaveProperty("indexing");
  await project.close();
});

test.each([
  ["CLAUDE.md", true],
  [".cursor/rules/a.mdc", true],
  ["packages/a/AGENTS.md", true],
  ["packages/a/.kiro/steering/x.md", true],
  ["packages/b/CLAUDE.md", false],
  ["packages/a/srcs/CLAUDE.md", false],
  ["packages/b/.claude/rules/x.md", false],
])("%s may apply to packages/a/src/x.ts by where it lies: %s", (path, expected) => {
  expect(canApplyTo(path, "packages/a/src/x.ts")).toBe(expected);
});
