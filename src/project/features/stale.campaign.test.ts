import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { StaleReport } from "../../protocol/stale.ts";
import { createTemporaryRepository, type TemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";
import type { Project } from "../project.ts";
import { acceptStale, staleSpecs } from "./stale.ts";

const requirements = `# Requirements

### Requirement 1: Log in

Code: \`src/login.ts\`

#### Acceptance Criteria

1. THE system SHALL open a session

### Requirement 2: Log out

Code: \`src/logout.ts\` and \`src/session.ts\`

#### Acceptance Criteria

1. THE system SHALL close the session
`;

const files = {
  ".kiro/specs/auth/requirements.md": requirements,
  "src/login.ts": "1\n",
  "src/logout.ts": "1\n",
  "src/session.ts": "1\n",
  ".gitignore": ".kit/\n",
};

async function repository(): Promise<TemporaryRepository> {
  const folder = await createTemporaryRepository(files);
  await folder.init();
  await folder.commit("all", 1_000_000);
  return folder;
}

async function using<Result>(
  root: string,
  use: (project: Project) => Promise<Result>,
  readOnly = false,
): Promise<Result> {
  const project = await openProject({ root, readOnly, indexFile: ":memory:" });
  try {
    return await use(project);
  } finally {
    await project.close();
  }
}

const report = async (root: string): Promise<StaleReport> => await using(root, staleSpecs);
const ids = ({ stale }: StaleReport): readonly string[] => stale.map(({ id }) => id);
const [login, logout] = ["fw_a-auth-requirements-req1", "fw_a-auth-requirements-req2"];

test("a block is stale when code that it names changed after the block", async () => {
  await using folder = await repository();
  const base = await folder.git("rev-parse", "HEAD");
  expect(await report(folder.root)).toEqual({ stale: [], checked: 2, notes: [] });
  await folder.write("src/session.ts", "2\n");
  const commit = await folder.commit("change the session", 2_000_000);
  expect((await report(folder.root)).stale).toEqual([
    {
      id: logout,
      title: "Requirement 2: Log out",
      path: ".kiro/specs/auth/requirements.md",
      line: 11,
      base,
      updated_at: "1970-01-12T13:46:40Z",
      files: [
        {
          path: "src/session.ts",
          changed_at: "1970-01-24T03:33:20Z",
          commit,
          commits: 1,
          lines_added: 1,
          lines_removed: 1,
        },
      ],
    },
  ]);
});

test("a spec that changes with or after its code is not stale", async () => {
  await using folder = await repository();
  await folder.write("src/login.ts", "2\n");
  await folder.write(".kiro/specs/auth/requirements.md", requirements.replace("open", "start"));
  await folder.commit("both", 2_000_000);
  expect(ids(await report(folder.root))).toEqual([]);
  await folder.write("src/login.ts", "3\n");
  await folder.commit("code", 3_000_000);
  await folder.write(".kiro/specs/auth/requirements.md", requirements.replace("open", "begin"));
  await folder.commit("spec", 4_000_000);
  expect(ids(await report(folder.root))).toEqual([]);
});

test("a task that is done does not fall behind, an open one does", async () => {
  await using folder = await repository();
  const tasks = "- [x] 1. Write `src/login.ts`\n- [ ] 2. Mend `src/login.ts`\n";
  await folder.write(".kiro/specs/auth/tasks.md", tasks);
  await folder.commit("tasks", 2_000_000);
  await folder.write("src/login.ts", "2\n");
  await folder.commit("code", 3_000_000);
  expect(ids(await report(folder.root))).toEqual([login, "fw_a-auth-tasks-2"]);
});

test("changes that are not committed count, on both sides", async () => {
  await using folder = await repository();
  await folder.write("src/login.ts", "2\n");
  const { stale } = await report(folder.root);
  expect(stale.map(({ id, files: changed }) => [id, changed])).toEqual([
    [login, [{ path: "src/login.ts", changed_at: "1970-01-12T13:46:40Z", lines_added: 1, lines_removed: 1 }]],
  ]);
  await folder.write(".kiro/specs/auth/requirements.md", `${requirements}\n`);
  expect(ids(await report(folder.root)), "the lines of the block are as they were").toEqual([login]);
  await folder.write(".kiro/specs/auth/requirements.md", requirements.replace("open", "begin"));
  expect(ids(await report(folder.root))).toEqual([]);
});

test("an acceptance holds until the code changes again, and holds for every reader", async () => {
  await using folder = await repository();
  await folder.write("src/login.ts", "2\n");
  await folder.write("src/session.ts", "2\n");
  await folder.commit("code", 2_000_000);
  const at = new Date("2026-11-21T10:00:00Z");
  const accepted = await using(
    folder.root,
    async (project) => await acceptStale(project, { ids: [login], at }),
  );
  expect(accepted).toEqual({ accepted: [login], written_to: "kit.accepted.jsonl" });
  expect(ids(await report(folder.root))).toEqual([logout]);
  const text = await readFile(join(folder.root, "kit.accepted.jsonl"), "utf8");
  expect(text).toMatch(
    /^\{"id":"fw_a-auth-requirements-req1","path":"src\/login\.ts","hash":"[0-9a-f]{32}","at":"2026-11-21T10:00:00\.000Z"\}\n$/,
  );
  await folder.git("config", "core.autocrlf", "true");
  await folder.write("src/login.ts", "2\r\n");
  expect(ids(await report(folder.root))).toEqual([logout]);

  await folder.write("src/login.ts", "3\n");
  await folder.commit("again", 3_000_000);
  const { stale } = await report(folder.root);
  expect(stale.map(({ id, accepted_at }) => [id, accepted_at])).toEqual([
    [login, "2026-11-21T10:00:00.000Z"],
    [logout, undefined],
  ]);
  const rest = await using(folder.root, async (project) => await acceptStale(project));
  expect(rest.accepted).toEqual([login, logout]);
  expect(ids(await report(folder.root))).toEqual([]);
  const lines = (await readFile(join(folder.root, "kit.accepted.jsonl"), "utf8")).split("\n");
  expect(lines).toHaveLength(3);
  expect(await using(folder.root, async (project) => await acceptStale(project))).toEqual({ accepted: [] });
});

test("two branches that accept different blocks merge, and both acceptances hold", async () => {
  await using folder = await repository();
  await folder.write("src/login.ts", "2\n");
  await folder.write("src/session.ts", "2\n");
  await folder.commit("code", 2_000_000);
  await using(folder.root, async (project) => await acceptStale(project, { ids: [login] }));
  const mine = await readFile(join(folder.root, "kit.accepted.jsonl"), "utf8");
  await rm(join(folder.root, "kit.accepted.jsonl"));
  await using(folder.root, async (project) => await acceptStale(project, { ids: [logout] }));
  const theirs = await readFile(join(folder.root, "kit.accepted.jsonl"), "utf8");
  await folder.write("kit.accepted.jsonl", theirs + mine + mine);
  expect(ids(await report(folder.root))).toEqual([]);
});

test("a conflict that was left in the file is named, and accepting does not touch it", async () => {
  await using folder = await repository();
  await folder.write("src/login.ts", "2\n");
  await folder.write("kit.accepted.jsonl", "<<<<<<< ours\n");
  const { stale, notes } = await report(folder.root);
  expect(stale).toHaveLength(1);
  expect(notes).toEqual(["kit.accepted.jsonl, line 1, cannot be read."]);
  const accepting = using(folder.root, async (project) => await acceptStale(project));
  await expect(accepting).rejects.toMatchObject({ code: "conflict" });
  expect(await readFile(join(folder.root, "kit.accepted.jsonl"), "utf8")).toBe("<<<<<<< ours\n");
});

test("an unknown block and a read-only project are refused", async () => {
  await using folder = await repository();
  const unknown = using(folder.root, async (project) => await acceptStale(project, { ids: ["nope"] }));
  await expect(unknown).rejects.toMatchObject({ code: "spec_not_found" });
  const readOnly = using(folder.root, async (project) => await acceptStale(project), true);
  await expect(readOnly).rejects.toMatchObject({ code: "forbidden" });
});

test("without Git, without a commit and in a shallow clone a note names what is unknown", async () => {
  await using folder = await createTemporaryRepository(files);
  expect(await report(folder.root)).toEqual({
    stale: [],
    checked: 2,
    notes: ["Not a Git repository. So kit cannot tell which specs are stale."],
  });
  await folder.init();
  expect((await report(folder.root)).notes).toEqual([
    "The repository has no commit yet, so nothing is stale.",
  ]);
  await folder.commit("one", 1_000_000);
  await folder.write("src/login.ts", "2\n");
  await folder.commit("two", 2_000_000);
  await using clones = await createTemporaryRepository();
  await clones.git("clone", "--quiet", "--depth=1", `file://${folder.root}`, "copy");
  const shallow = await report(join(clones.root, "copy"));
  expect(shallow.stale).toEqual([]);
  expect(shallow.notes[0]).toContain("shallow");
});

test("an instruction file is stale by the code that it names, not by every file", async () => {
  await using folder = await createTemporaryRepository({
    "CLAUDE.md":
      "## Work\n\nSee `src/a.ts`, `package.json`, `docs/x.md`, `.github/workflows/ci.yml`, `package-lock.json`.\n",
    "src/a.ts": "1",
    "package.json": "{}",
    "docs/x.md": "1",
    ".github/workflows/ci.yml": "1",
    "package-lock.json": "{}",
  });
  await folder.init();
  await folder.commit("one", 1_700_000_000);
  for (const path of ["package.json", "docs/x.md", ".github/workflows/ci.yml", "package-lock.json"])
    await folder.write(path, `{ "a": 2 }`);
  await folder.commit("two", 1_700_000_100);
  const project = await openProject({ root: folder.root, indexFile: ":memory:" });
  expect(await staleSpecs(project)).toMatchObject({ stale: [], checked: 1 });
  await folder.write("src/a.ts", "2");
  await folder.commit("three", 1_700_000_200);
  await project.refresh();
  expect((await staleSpecs(project)).stale.map(({ files }) => files.map(({ path }) => path))).toEqual([
    ["src/a.ts"],
  ]);
  await project.close();
});
