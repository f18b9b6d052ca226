import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { rounds } from "../../testing/campaign.suite.ts";
import { repositoryForTests } from "../../testing/repository-for-tests.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { threadsAtOnce } from "../../testing/threads-at-once.ts";
import { openProject } from "../open-project.ts";
import type { Project } from "../project.ts";

const files = {
  "CLAUDE.md": "## Build\n\nRun `src/a.ts` first.\n\n## Test\n\nTest everything twice.\n",
  "AGENTS.md": "# Agents\n\n## Style\n\nTabs.\n",
  "src/a.ts": "",
  ".kiro/specs/auth/requirements.md":
    "# Requirements\n\n### Requirement 1: Login\n\n**User Story:** As a user, I want in.\n\n#### Acceptance Criteria\n\n1. WHEN I ask THEN THE system SHALL answer\n",
  ".kiro/specs/auth/tasks.md": "# Plan\n\n- [ ] 1. Do it\n  - _Requirements: 1.1, 7.1_\n",
};

let intactBytes: Buffer;
let truth: unknown;
const indexFile = (): string => join(repository.root, ".kit", "index.db");

const open = async (): Promise<Project> => await openProject({ root: repository.root });

/** All that a project answers. */
function answersOf(project: Project): unknown {
  return {
    files: project.files(),
    specs: [...project.specs.all()],
    page: project.specs.query({}),
    searches: ["build", "test twice", "system answer", "login"].map((q) => project.specs.query({ q })),
    tagged: project.specs.query({ tag: "fw_c" }),
    diagnostics: project.specs.diagnostics(),
    graph: project.specs.graph(),
    impact: project.specs.impact({ files: ["src/a.ts", ".kiro/specs/auth/requirements.md"] }),
    guidelines: project.guidelines.list({}),
  };
}

const repository = repositoryForTests(files);
beforeAll(async () => {
  const project = await open();
  truth = answersOf(project);
  await project.close();
  await new Promise((resolve) => setTimeout(resolve, 40));
  await (await open()).close();
  intactBytes = readFileSync(indexFile());
});

function putIndex(bytes: Uint8Array): void {
  for (const suffix of ["-wal", "-shm"]) rmSync(indexFile() + suffix, { force: true });
  writeFileSync(indexFile(), bytes);
}

/** Opens the project over an index and expects the right answers; returns why it was rebuilt. */
async function expectTruth(): Promise<string | undefined> {
  const project = await open();
  try {
    expect(answersOf(project)).toEqual(truth);
    return (await project.refresh()).rebuilt;
  } finally {
    await project.close();
  }
}

test("an undamaged index is not rebuilt", async () => {
  putIndex(intactBytes);
  const project = await open();
  expect(await project.refresh()).toMatchObject({ parsed_files: 0 });
  expect(answersOf(project)).toEqual(truth);
  await project.close();
});

async function reasonFor(bytes: Uint8Array): Promise<string | undefined> {
  putIndex(bytes);
  return await expectTruth();
}

test.each([
  ["garbage", () => Buffer.from("This is not a database. ".repeat(1000))],
  ["a header alone", () => intactBytes.subarray(0, 100)],
  ["zeros", () => Buffer.alloc(intactBytes.length)],
] as const)("%s in place of the index is rebuilt, and told why", async (_name, bytes) => {
  expect(await reasonFor(bytes())).toBe("The index was damaged.");
});

test("half an index is rebuilt", async () => {
  putIndex(intactBytes.subarray(0, intactBytes.length / 2));
  await expectTruth();
});

test("an empty index file is replaced", async () => {
  expect(await reasonFor(Buffer.alloc(0))).toBeUndefined();
});

test.each([
  ["PRAGMA user_version = 999", "The index was made by a newer version of kit."],
  ["PRAGMA user_version = 0", "The index was made by an older version of kit."],
  ["PRAGMA application_id = 7", "The file was not an index of kit."],
  [
    "UPDATE meta SET value = 'x' WHERE name = 'fingerprint'",
    "The configuration or the version of kit has changed.",
  ],
])("after %s the index is rebuilt", async (sql, reason) => {
  expect(await reasonFor(changed(sql))).toBe(reason);
});

test.each([
  "DROP TABLE refs",
  "DELETE FROM classes",
  "UPDATE blocks SET metadata = 'x'",
  "UPDATE blocks SET links = '['",
  "UPDATE files SET guidelines = '[' WHERE guidelines <> ''",
  "UPDATE folders SET stamps = ''",
])("after %s, which shows when it is read, the index is rebuilt", async (sql) => {
  putIndex(changed(sql));
  await expectTruth();
});

test("an index that a reader has filled again takes the changes of the next pass", async () => {
  putIndex(changed("DROP TABLE refs"));
  const project = await open();
  answersOf(project);
  await repository.write("CLAUDE.md", "## An edit\n");
  try {
    expect(await project.refresh()).toMatchObject({ parsed_files: 1, rebuilt: "The index was damaged." });
    expect(project.specs.query({ q: "edit" }).total_count).toBe(1);
  } finally {
    await repository.write("CLAUDE.md", files["CLAUDE.md"]);
    await project.close();
  }
});

/** The bytes of the index after a change of its content. */
function changed(sql: string): Buffer {
  putIndex(intactBytes);
  const database = new DatabaseSync(indexFile());
  database.exec(sql);
  database.close();
  return readFileSync(indexFile());
}

test("a truncated index is rebuilt while it is in use", async () => {
  putIndex(intactBytes);
  const project = await open();
  truncateSync(indexFile(), 8192);
  expect(answersOf(project)).toEqual(truth);
  expect((await project.refresh()).rebuilt).toBe("The index was damaged.");
  await project.close();
});

test("no flipped byte makes a question fail", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(), fc.integer({ min: 1, max: 255 })), { minLength: 1, maxLength: 3 }),
      async (flips) => {
        const bytes = Buffer.from(intactBytes);
        for (const [at, mask] of flips) {
          const offset = at % bytes.length;
          bytes[offset] = (bytes[offset] ?? 0) ^ mask;
        }
        putIndex(bytes);
        const project = await open();
        answersOf(project);
        await project.close();
      },
    ),
    { numRuns: rounds(15, 60) },
  );
});

test("an index that several processes create at the same time is created once, and opens for each", async () => {
  await using folder = await createTemporaryRepository();
  const errors = await threadsAtOnce({
    rounds: 60,
    data: { folder: folder.root, module: new URL("../store/open-index.ts", import.meta.url).href },
    setUp: "const { openIndex } = await import(data.module)",
    body: `const { database, rebuilt } = openIndex(data.folder + "/" + round + ".db", "1");
      database.close();
      if (rebuilt !== undefined) throw new Error(rebuilt)`,
  });
  expect(errors).toEqual([]);
});

test("several processes replace an index of another version at the same time, and it opens for each", async () => {
  await using folder = await createTemporaryRepository();
  const errors = await threadsAtOnce({
    rounds: 60,
    data: {
      file: join(folder.root, "index.db"),
      module: new URL("../store/open-index.ts", import.meta.url).href,
    },
    setUp: "const { openIndex, writeMeta } = await import(data.module)",
    body: `const { database } = openIndex(data.file, String(round));
      database.transaction(() => writeMeta(database, "head_key", "a"));
      database.close()`,
  });
  expect(errors).toEqual([]);
});

test("an index opens at once although a process was killed while it opened it", async () => {
  const { pid } = spawnSync(process.execPath, ["--version"]);
  writeFileSync(`${indexFile()}.lock`, String(pid));
  const start = performance.now();
  const project = await open();
  expect(performance.now() - start).toBeLessThan(5_000);
  expect(existsSync(`${indexFile()}.lock`)).toBe(false);
  await project.close();
});

test("an index that is deleted while it is in use is made again by the next pass", async () => {
  putIndex(intactBytes);
  const project = await open();
  rmSync(join(repository.root, ".kit"), { recursive: true });
  expect(answersOf(project)).toEqual(truth);
  await project.refresh();
  expect(readFileSync(indexFile()).length).toBeGreaterThan(0);
  expect(answersOf(project)).toEqual(truth);
  await project.close();
});

test("an index folder that is a link is not written through", async () => {
  await using outside = await createTemporaryRepository();
  await using linked = await createTemporaryRepository(files);
  mkdirSync(join(outside.root, "elsewhere"));
  symlinkSync(join(outside.root, "elsewhere"), join(linked.root, ".kit"));
  const project = await openProject({ root: linked.root });
  expect(project.specs.query({}).total_count).toBeGreaterThan(0);
  await project.close();
  const { readdirSync } = await import("node:fs");
  expect(readdirSync(join(outside.root, "elsewhere"))).toEqual([]);
});
