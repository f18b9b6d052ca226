import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { exportSpecs } from "../specs/export/export-specs.ts";
import { rounds } from "../testing/campaign.suite.ts";
import { createTemporaryRepository } from "../testing/temporary-repository.ts";
import { openProject } from "./open-project.ts";
import type { Project } from "./project.ts";

/** All that a project answers. */
function answersOf(project: Project): unknown {
  return {
    files: project.files(),
    specs: [...project.specs.all()],
    counts: project.specs.query({ limit: 1 }).counts_by_framework,
    searches: ["alpha", "beta gamma", "shall"].map((q) =>
      project.specs
        .query({ q })
        .specs.map(({ id }) => id)
        .sort(),
    ),
    diagnostics: project.specs.diagnostics(),
    graph: project.specs.graph(),
    guidelines: project.guidelines.list({}),
    guidelineDiagnostics: project.guidelines.diagnostics(),
  };
}

const paths = [
  "CLAUDE.md",
  "a/CLAUDE.md",
  "a/b/CLAUDE.md",
  "AGENTS.md",
  ".kiro/specs/auth/requirements.md",
  ".kiro/specs/auth/tasks.md",
  "a/.kiro/specs/auth/tasks.md",
  "src/x.ts",
  "a/src/x.ts",
  ".gitignore",
  "a/.gitignore",
];
const texts = [
  "",
  "## Alpha\n\nSee `src/x.ts` for beta gamma.\n",
  "## Alpha\n\none\n\n## Alpha\n\ntwo\n\n## Alpha 2\n\nthree\n",
  "# Requirements\n\n### Requirement 1: Alpha\n\n**User Story:** As a user, I want beta.\n\n#### Acceptance Criteria\n\n1. WHEN gamma THEN THE system SHALL alpha\n",
  "# Plan\n\n- [ ] 1. Alpha in `src/x.ts`\n  - _Requirements: 1.1_\n- [x] 2. Beta\n  - _Requirements: 9.9_\n",
  "b/\n",
  "*.ts\nrequirements.md\n",
  "\ufeff## Bom\n\ntext \u0000 nul\n",
];
type Step = readonly [kind: "write" | "remove" | "rename", path: string, text: string, other: string];
const step: fc.Arbitrary<Step> = fc.tuple(
  fc.constantFrom("write", "write", "write", "remove", "rename"),
  fc.constantFrom(...paths),
  fc.constantFrom(...texts),
  fc.constantFrom(...paths, "a", "moved"),
);

function perform(root: string, [kind, path, text, other]: Step): void {
  const file = join(root, path);
  try {
    if (kind === "write") {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    } else if (kind === "remove") {
      rmSync(join(root, other), { force: true, recursive: true });
    } else {
      mkdirSync(dirname(join(root, other)), { recursive: true });
      renameSync(file, join(root, other));
    }
  } catch {
    // There is nothing to rename, or a file is where a folder should be: then nothing changes.
  }
}

test("after any changes, a refreshed index answers as one made anew", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), { maxLength: 5 }),
      async (rounds) => {
        await using repository = await createTemporaryRepository({ "CLAUDE.md": texts[1] ?? "" });
        const { root } = repository;
        let project = await openProject({ root });
        for (const [index, round] of rounds.entries()) {
          for (const each of round) perform(root, each);
          if (index % 2 === 0) await project.refresh();
          else {
            await project.close();
            project = await openProject({ root });
          }
          const rebuilt = await openProject({ root, indexFile: ":memory:" });
          expect(answersOf(project)).toEqual(answersOf(rebuilt));
          await rebuilt.close();
        }
        await project.close();
      },
    ),
    { numRuns: rounds(15, 80) },
  );
});

test("a second start parses nothing, and nothing changes", async () => {
  await using repository = await createTemporaryRepository({ "CLAUDE.md": texts[1] ?? "", "a.txt": "" });
  const first = await openProject({ root: repository.root });
  const answers = answersOf(first);
  await first.close();
  const second = await openProject({ root: repository.root });
  expect(answersOf(second)).toEqual(answers);
  expect(await second.refresh()).toMatchObject({ source_files: 1, parsed_files: 0, removed_files: 0 });
  await second.close();
});

test("a file that is touched is not parsed again", async () => {
  await using repository = await createTemporaryRepository({ "CLAUDE.md": texts[1] ?? "" });
  const project = await openProject({ root: repository.root });
  await repository.write("CLAUDE.md", texts[1] ?? "");
  expect(await project.refresh()).toMatchObject({ parsed_files: 0 });
  await repository.write("CLAUDE.md", texts[2] ?? "");
  expect(await project.refresh()).toMatchObject({ parsed_files: 1, specs: 3 });
  await project.close();
});

test("a file that a block names appears in it when the file appears in the project", async () => {
  await using repository = await createTemporaryRepository({ "CLAUDE.md": texts[1] ?? "" });
  const project = await openProject({ root: repository.root });
  expect(project.specs.get("fw_c-alpha")?.metadata.code_refs).toBeUndefined();
  await repository.write("src/x.ts", "");
  expect(await project.refresh()).toMatchObject({ parsed_files: 0 });
  expect(project.specs.get("fw_c-alpha")?.metadata.code_refs).toEqual(["src/x.ts"]);
  await project.close();
});

test("the index keeps itself out of Git", async () => {
  await using repository = await createTemporaryRepository({ "CLAUDE.md": "## A\n\ntext\n" });
  await repository.init();
  await (await openProject({ root: repository.root })).close();
  expect(await repository.git("status", "--porcelain")).toBe("?? CLAUDE.md");
});

test("an index that is not to be kept leaves nothing in the project", async () => {
  await using repository = await createTemporaryRepository({ "CLAUDE.md": "## A\n\ntext\n" });
  await repository.init();
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  expect(project.specs.query({}).total_count).toBe(1);
  await project.close();
  expect(await repository.git("status", "--porcelain", "--ignored")).toBe("?? CLAUDE.md");
});

test("a root that is not a folder is refused", async () => {
  await using repository = await createTemporaryRepository({ "a.txt": "" });
  for (const root of [join(repository.root, "a.txt"), join(repository.root, "missing")]) {
    await expect(openProject({ root })).rejects.toMatchObject({ code: "invalid_request" });
  }
});

test("a root given as a link is the folder that it leads to", async () => {
  await using repository = await createTemporaryRepository({ "real/CLAUDE.md": "## A\n\ntext\n" });
  symlinkSync("real", join(repository.root, "link"));
  const project = await openProject({ root: join(repository.root, "link"), indexFile: ":memory:" });
  expect(project.root).toBe(join(repository.root, "real"));
  expect(project.name).toBe("real");
  expect(project.files()).toEqual(["CLAUDE.md"]);
  await project.close();
});

test("an empty project is a project", async () => {
  await using repository = await createTemporaryRepository();
  const project = await openProject({ root: repository.root });
  expect(project.specs.query({})).toEqual({ specs: [], total_count: 0, counts_by_framework: {} });
  expect(project.specs.diagnostics()).toEqual([]);
  await project.close();
});

test("configured globs select the files to read", async () => {
  await using repository = await createTemporaryRepository({
    "CLAUDE.md": "## A\n\ntext\n",
    "vendor/CLAUDE.md": "## B\n\ntext\n",
    "AGENTS.md": "# Agents\n\ntext\n",
  });
  const config = { specs: { exclude: ["vendor/**"] }, guidelines: { include: ["AGENTS.md"] } };
  const project = await openProject({ root: repository.root, indexFile: ":memory:", config });
  expect([...project.specs.all()].map(({ path }) => path)).toEqual(["CLAUDE.md"]);
  expect(project.guidelines.list({}).guidelines.map(({ source_file }) => source_file)).toEqual(["AGENTS.md"]);
  await project.close();
});

test("a first pass can be stopped, and leaves nothing behind", async () => {
  await using repository = await createTemporaryRepository(
    Object.fromEntries(Array.from({ length: 400 }, (_, index) => [`p${index}/CLAUDE.md`, "## A\n\ntext\n"])),
  );
  const stop = new AbortController();
  const reason = new Error("enough");
  const opening = openProject({
    root: repository.root,
    signal: stop.signal,
    onProgress: () => stop.abort(reason),
  });
  await expect(opening).rejects.toBe(reason);
  const project = await openProject({ root: repository.root });
  expect(project.specs.query({ limit: 1 }).total_count).toBe(400);
  await project.close();
});

test("blocks carry the dates of their file's commits", async () => {
  await using repository = await createTemporaryRepository({ "CLAUDE.md": "## A\n\ntext\n" });
  await repository.init();
  await repository.commit("one", 1_700_000_000);
  const project = await openProject({ root: repository.root });
  expect(project.specs.get("fw_c-a")).toMatchObject({
    created_at: "2023-11-14T22:13:20Z",
    updated_at: "2023-11-14T22:13:20Z",
  });
  await repository.write("CLAUDE.md", "## A\n\nother text\n");
  const last = await repository.commit("two", 1_700_000_060);
  await project.refresh();
  expect(project.datesOf("CLAUDE.md")).toEqual({
    first: 1_700_000_000,
    last: 1_700_000_060,
    commit: last,
    author: "Ann",
  });
  await project.close();
});

test("blocks carry the author of their file's first commit where nothing in the file names one", async () => {
  const tasks = "- [ ] 1. Do it\n";
  await using repository = await createTemporaryRepository({
    "CLAUDE.md": "## A\n\ntext\n",
    ".claude/rules/own.md": "---\nauthor: Cora <cora@example.org>\n---\n\n# B\n\ntext\n\n## C\n\ntext\n",
    ".kiro/specs/x/tasks.md": `---\nauthors: [Dan, Eve]\n---\n${tasks}`,
    ".kiro/specs/y/tasks.md": `---\nauthor:\n---\n${tasks}`,
    ".cursor/rules.json": JSON.stringify({ rules: [{ rule: "Be kind.", author: "Fay" }, "Be brief."] }),
  });
  await repository.init();
  await repository.commit("one", 1_700_000_000);
  await repository.git("config", "user.name", "Bob");
  await repository.write("CLAUDE.md", "## A\n\nother text\n");
  await repository.commit("two", 1_700_000_060);
  await repository.write("sub/CLAUDE.md", "## New\n\nnot committed\n");
  const project = await openProject({ root: repository.root });
  const authors = [...project.specs.all()].map(({ id, metadata }) => [id, metadata.author]);
  expect(Object.fromEntries(authors)).toEqual({
    "fw_c-a": "Ann",
    "fw_c-b": "Cora",
    "fw_c-c": "Cora",
    "fw_a-x-tasks-1": "Dan, Eve",
    "fw_a-y-tasks-1": "Ann",
    "fw_b-rule-0": "Fay",
    "fw_b-rule-1": "Ann",
    "fw_c-new": undefined,
  });
  await project.close();
  const reopened = await openProject({ root: repository.root });
  expect(reopened.specs.get("fw_c-a")?.metadata.author).toBe("Ann");
  expect(
    exportSpecs(
      [...reopened.specs.all()].filter(({ framework }) => framework === "fw_c"),
      "fw_c",
    ).losses,
  ).toEqual([]);
  await reopened.close();
});
