import { linkSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { rounds } from "../../testing/campaign.suite.ts";
import { createTemporaryRepository, type TemporaryRepository } from "../../testing/temporary-repository.ts";
import { staleSpecs } from "../features/stale.ts";
import { openProject } from "../open-project.ts";
import type { Project } from "../project.ts";

const rules =
  "## Tests\n\nRun `src/a.ts` before you push anything anywhere.\n\n## Names\n\nSpell every word of a name out.\n";

const open = (repository: TemporaryRepository): Promise<Project> =>
  openProject({ root: repository.root, indexFile: ":memory:" });

const link = (repository: TemporaryRepository, path: string, target: string): void => {
  mkdirSync(dirname(join(repository.root, path)), { recursive: true });
  symlinkSync(target, join(repository.root, path));
};

const listed = (project: Project) =>
  project.guidelines
    .list({})
    .guidelines.map(({ title, source_file, aliases }) => [title, source_file, aliases?.join() ?? ""]);

test("a file with several names is shown once, under its real path, with its aliases", async () => {
  await using repository = await createTemporaryRepository({ "AGENTS.md": rules, "src/a.ts": "" });
  link(repository, "CLAUDE.md", "AGENTS.md");
  link(repository, ".cursorrules", "CLAUDE.md");
  const project = await open(repository);
  const names = "CLAUDE.md,.cursorrules";
  expect(listed(project)).toEqual([
    ["Tests", "AGENTS.md", names],
    ["Names", "AGENTS.md", names],
  ]);
  expect(project.guidelines.list({}).counts_by_source).toEqual({ agents: 2 });
  expect(project.guidelines.lint()).toEqual([]);
  expect(project.guidelines.diagnostics()).toEqual([]);
  const specs = project.specs.query({}).specs;
  expect(specs.map(({ path, framework, metadata }) => [path, framework, metadata.aliases])).toEqual([
    ["AGENTS.md", "fw_c", ["CLAUDE.md", ".cursorrules"]],
    ["AGENTS.md", "fw_c", ["CLAUDE.md", ".cursorrules"]],
  ]);
  expect(project.specs.query({ path: "CLAUDE.md" }).total_count).toBe(2);
  expect(project.guidelines.export({ format: "fw_c" }).content.match(/^## /gm)).toHaveLength(2);
  await project.close();
});

test("a file applies to every tool by the name that the tool reads", async () => {
  await using repository = await createTemporaryRepository({ "AGENTS.md": rules });
  link(repository, "CLAUDE.md", "AGENTS.md");
  link(repository, ".cursorrules", "CLAUDE.md");
  link(repository, "pkg/CLAUDE.md", "../AGENTS.md");
  const project = await open(repository);
  const explained = (tool: "fw_c" | "fw_b", file: string) =>
    project.guidelines
      .explain(file, tool)
      .applied.map(({ guideline, via }) => [guideline.title, guideline.source_file, via]);
  expect(explained("fw_c", "src/a.ts")).toEqual([
    ["Tests", "AGENTS.md", "CLAUDE.md"],
    ["Names", "AGENTS.md", "CLAUDE.md"],
  ]);
  expect(explained("fw_c", "pkg/a.ts")).toHaveLength(2);
  expect(explained("fw_b", "src/a.ts").map(([title]) => title)).toEqual(["Tests", "Names"]);
  expect(project.guidelines.explain("src/a.ts").applied).toHaveLength(2);
  expect(project.guidelines.explain("src/a.ts").shadowed).toEqual([]);
  await project.close();
});

test("a linked folder is another name of the folder, for what only that name makes a source too", async () => {
  await using repository = await createTemporaryRepository({
    "rules/a.mdc": "---\nglobs: src/**\n---\n# A\n\nx\n",
    "rules/deep/b.mdc": "---\nalwaysApply: true\n---\n# B\n\ny\n",
    "specs/auth/tasks.md": "- [ ] 1. Do `src/a.ts`\n",
    "src/a.ts": "",
  });
  link(repository, ".cursor", "tools");
  link(repository, "tools/rules", "../rules");
  link(repository, ".kiro", "tools");
  link(repository, "tools/specs", "../specs");
  link(repository, "tools/self", "..");
  const project = await open(repository);
  expect(listed(project).map(([title, file]) => [title, file])).toEqual([
    ["A", "rules/a.mdc"],
    ["B", "rules/deep/b.mdc"],
  ]);
  expect(
    project.guidelines.explain("src/a.ts", "fw_b").applied.map(({ guideline }) => guideline.title),
  ).toEqual(["B", "A"]);
  expect(project.specs.query({ spec_type: "task" }).specs.map(({ id, path }) => [id, path])).toEqual([
    ["fw_a-auth-tasks-1", "specs/auth/tasks.md"],
  ]);
  await repository.write("rules/a.mdc", "---\nglobs: src/**\n---\n# A2\n\nx\n");
  await repository.write("rules/new/c.mdc", "---\nalwaysApply: true\n---\n# C\n\nz\n");
  await project.refresh();
  expect(listed(project).map(([title]) => title)).toEqual(["A2", "B", "C"]);
  rmSync(join(repository.root, "tools/rules"));
  await project.refresh();
  expect(listed(project).filter(([title]) => title === "A2")).toEqual([]);
  await project.close();
});

test("hard links are one file, with the first name as its path", async () => {
  await using repository = await createTemporaryRepository({ "AGENTS.md": rules });
  linkSync(join(repository.root, "AGENTS.md"), join(repository.root, "CLAUDE.md"));
  const project = await open(repository);
  expect(listed(project)).toEqual([
    ["Tests", "AGENTS.md", "CLAUDE.md"],
    ["Names", "AGENTS.md", "CLAUDE.md"],
  ]);
  expect(project.guidelines.lint()).toEqual([]);
  rmSync(join(repository.root, "AGENTS.md"));
  await project.refresh();
  expect(listed(project)).toEqual([
    ["Tests", "CLAUDE.md", ""],
    ["Names", "CLAUDE.md", ""],
  ]);
  await project.close();
});

test("links that lead out, nowhere, to themselves or to a folder are what they were: a diagnostic", async () => {
  await using outside = await createTemporaryRepository({ "AGENTS.md": "## Secret\n\nx\n" });
  await using repository = await createTemporaryRepository({ "docs/x.md": "" });
  link(repository, "AGENTS.md", join(outside.root, "AGENTS.md"));
  link(repository, "a/AGENTS.md", "nowhere.md");
  link(repository, "b/AGENTS.md", "AGENTS.md");
  link(repository, "c/AGENTS.md", "../docs");
  link(repository, ".cursor", outside.root);
  link(repository, "src", outside.root);
  link(repository, "dangling", "nowhere");
  const project = await open(repository);
  expect(project.guidelines.list({}).guidelines.every(({ is_sample }) => is_sample)).toBe(true);
  expect(project.guidelines.diagnostics().map(({ path, code }) => [path, code])).toEqual([
    ["AGENTS.md", "outside_link"],
    ["a/AGENTS.md", "dangling_link"],
    ["b/AGENTS.md", "link_loop"],
    ["c/AGENTS.md", "not_a_file"],
  ]);
  await project.close();
});

test("a file that Git ignores is known by the first of the links that lead to it", async () => {
  await using repository = await createTemporaryRepository({ "gen/rules.md": rules, ".gitignore": "gen\n" });
  link(repository, "CLAUDE.md", "gen/rules.md");
  link(repository, "AGENTS.md", "gen/rules.md");
  const project = await open(repository);
  expect(listed(project).map(([, file, aliases]) => [file, aliases])).toEqual([
    ["AGENTS.md", "CLAUDE.md"],
    ["AGENTS.md", "CLAUDE.md"],
  ]);
  await repository.write("gen/rules.md", "## Other\n\nx\n");
  await project.refresh();
  expect(listed(project)).toEqual([["Other", "AGENTS.md", "CLAUDE.md"]]);
  await repository.write(".gitignore", "");
  await project.refresh();
  expect(listed(project)).toEqual([["Other", "gen/rules.md", "AGENTS.md,CLAUDE.md"]]);
  await project.close();
});

test("dates are those of the target, and a change counts under every name", async () => {
  await using repository = await createTemporaryRepository({ "src/a.ts": "1", "src/real.ts": "1" });
  await repository.init();
  link(repository, "CLAUDE.md", "docs/rules.md");
  link(repository, "src/b.ts", "real.ts");
  await repository.write("docs/rules.md", "## A\n\nSee `src/a.ts` and `src/b.ts`.\n");
  await repository.commit("one", 1_700_000_000);
  await repository.write("src/a.ts", "2");
  await repository.write("src/real.ts", "2");
  await repository.commit("two", 1_700_000_100);
  await repository.write("docs/rules.md", "## A\n\nSee `src/a.ts` and `src/b.ts`, always.\n");
  await repository.commit("three", 1_700_000_200);
  const project = await open(repository);
  const [spec] = project.specs.query({}).specs;
  expect(spec).toMatchObject({ path: "docs/rules.md", updated_at: "2023-11-14T22:16:40Z" });
  expect(spec?.metadata.code_refs).toEqual(["src/a.ts", "src/real.ts"]);
  expect((await staleSpecs(project)).stale).toEqual([]);
  for (const file of ["CLAUDE.md", "docs/rules.md", "src/a.ts", "src/b.ts", "src/real.ts"])
    expect([file, project.specs.impact({ files: [file] }).affected.map(({ id }) => id)]).toEqual([
      file,
      [spec?.id],
    ]);
  await repository.write("src/real.ts", "3");
  await repository.commit("four", 1_700_000_300);
  await project.refresh();
  expect((await staleSpecs(project)).stale.map(({ files }) => files.map(({ path }) => path))).toEqual([
    ["src/real.ts"],
  ]);
  await project.close();
});

const paths = [
  "AGENTS.md",
  "CLAUDE.md",
  ".cursorrules",
  "a/CLAUDE.md",
  "a/r/x.mdc",
  "docs/r.md",
  ".cursor/rules",
  "b",
  "a/r",
];
const targets = [
  "AGENTS.md",
  "CLAUDE.md",
  "../AGENTS.md",
  "docs/r.md",
  "../a/r",
  "a",
  ".",
  "..",
  "../docs/r.md",
  "nowhere",
];
type Step = readonly ["write" | "link" | "hard" | "remove" | "rename", string, string, string];
const step: fc.Arbitrary<Step> = fc.tuple(
  fc.constantFrom("write", "write", "link", "link", "link", "hard", "remove", "rename"),
  fc.constantFrom(...paths),
  fc.constantFrom(...targets),
  fc.constantFrom(...paths, ".gitignore"),
);

function perform(root: string, [kind, path, target, other]: Step): void {
  const file = join(root, path);
  try {
    mkdirSync(dirname(file), { recursive: true });
    if (kind === "remove") rmSync(file, { recursive: true, force: true });
    else if (kind === "rename") renameSync(file, join(root, other));
    else if (kind === "hard") linkSync(file, join(root, other));
    else if (other === ".gitignore")
      writeFileSync(join(root, other), target === "nowhere" ? "" : `/${target}\n`);
    else {
      if (kind === "link") rmSync(file, { recursive: true, force: true });
      if (kind === "write")
        writeFileSync(file, `---\nglobs: ${target}/**\n---\n## ${target}\n\nSee \`${other}\`.\n`);
      else symlinkSync(target, file);
    }
  } catch {
    // The step makes no sense on what there is; the next one may.
  }
}

test("a project that followed any changes of links is the same as one opened now", async () => {
  const answers = (project: Project): unknown => ({
    specs: [...project.specs.all()],
    guidelines: project.guidelines.list({}),
    diagnostics: [project.specs.diagnostics(), project.guidelines.diagnostics(), project.guidelines.lint()],
    impact: project.specs.impact({ files: paths }),
    explain: project.guidelines.explain("a/r/x.ts"),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { maxLength: 8 }),
      async (passes) => {
        await using repository = await createTemporaryRepository({ "AGENTS.md": "## A\n\nx\n" });
        const project = await open(repository);
        for (const steps of passes) {
          for (const each of steps) perform(repository.root, each);
          await project.refresh();
          const fresh = await open(repository);
          try {
            expect(answers(project)).toEqual(answers(fresh));
          } finally {
            await fresh.close();
          }
        }
        await project.close();
      },
    ),
    { numRuns: rounds(5, 20) },
  );
});
