import { mkdir, readdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { SyncPlan } from "../../protocol/sync.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";

async function open(files: Record<string, string>) {
  const folder = await createTemporaryRepository(files);
  const project = await openProject({ root: folder.root });
  return {
    project,
    folder,
    text: async (path: string) => await readFile(join(folder.root, path), "utf8"),
    async [Symbol.asyncDispose]() {
      await project.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

const actions = ({ entries }: SyncPlan): string[] => entries.map(({ action, path }) => `${action} ${path}`);

const agents = "# Shop\n\nSells books.\n\n## Style\n\nTabs.\n\n## Tests\n\nOne per rule.\n";

test("a target that is a link to the source needs nothing, and nothing is written through a link twice", async () => {
  await using shop = await open({
    "AGENTS.md": agents,
    "rules/ts.md": "---\npaths: ['**/*.ts']\n---\n# Ts\n\nx\n",
  });
  await symlink("AGENTS.md", join(shop.folder.root, "CLAUDE.md"));
  await symlink("CLAUDE.md", join(shop.folder.root, ".cursorrules"));
  await mkdir(join(shop.folder.root, ".claude"));
  await symlink("../rules", join(shop.folder.root, ".claude/rules"));
  await shop.project.refresh();
  const { guidelines } = shop.project;
  const same = await guidelines.planSync({ source: "agents", targets: ["fw_c"] });
  expect(actions(same)).toEqual(["unchanged CLAUDE.md"]);
  expect(same.in_sync).toBe(true);
  const back = await guidelines.planSync({ source: "fw_c", targets: ["agents", "steering"] });
  expect(
    back.entries.map(({ path }) => path).filter((path) => /AGENTS|CLAUDE|cursorrules/.test(path)),
  ).toHaveLength(1);
  await guidelines.sync({ source: "fw_c", targets: ["agents", "steering"] });
  const written = await shop.text("AGENTS.md");
  expect(written.startsWith(agents)).toBe(true);
  for (const heading of ["## Style", "## Tests", "## Ts"]) expect(written.split(heading)).toHaveLength(2);
  expect((await guidelines.planSync({ source: "fw_c", targets: ["agents", "steering"] })).in_sync).toBe(true);
});

test("a target folder that is a link to the source's folder is the source", async () => {
  await using shop = await open({
    ".kiro/steering/ts.md": "---\ninclusion: fileMatch\nfileMatchPattern: '**/*.ts'\n---\n# Ts\n\nx\n",
  });
  await mkdir(join(shop.folder.root, ".claude"));
  await symlink("../.kiro/steering", join(shop.folder.root, ".claude/rules"));
  await shop.project.refresh();
  const plan = await shop.project.guidelines.sync({ source: "steering", targets: ["fw_c"] });
  expect(actions(plan)).toEqual(["unchanged .claude/rules"]);
  expect(await readdir(join(shop.folder.root, ".kiro/steering"))).toEqual(["ts.md"]);
});

test("an adoption moves hand-written text of the targets to the source, and loses nothing", async () => {
  await using shop = await open({
    "AGENTS.md": agents,
    "CLAUDE.md":
      "# Claude\n\nBe brief.\n\n## Style\n\nTabs.\n\n## Tests\n\nTwo per rule, at least two of them.\n\n## Deploy\n\nOn Fridays never, whatever they say.\n",
    ".cursorrules": "## Deploy\n\nOn Fridays never, whatever they say.\n",
    ".cursor/rules/ts.mdc": "---\nglobs: **/*.ts\n---\n# Ts\n\nNo any, not even in the tests.\n",
    ".cursor/rules/asked.mdc": "---\ndescription: d\n---\n# Asked\n\nOnly when it is asked for.\n",
    "web/CLAUDE.md": "## Web\n\nNo tables for layout, ever.\n",
    "CLAUDE.local.md": "## Mine\n\nMine alone.\n",
  });
  const { guidelines } = shop.project;
  const request = { source: "agents", targets: ["fw_c", "fw_b"], adopt: true } as const;
  const plan = await guidelines.planSync(request);
  expect(new Set(plan.entries.map(({ path }) => path)).size).toBe(plan.entries.length);
  expect(plan.entries[0]).toMatchObject({ path: "AGENTS.md", action: "update", before: agents });
  expect(await shop.text("AGENTS.md")).toBe(agents);
  expect(plan.left_out.join("\n")).toContain(".cursor/rules/asked.mdc");
  await guidelines.sync(request);
  const source = `${await shop.text("AGENTS.md")}${await shop.text("web/AGENTS.md")}`;
  expect(source).toContain(agents.trimEnd());
  for (const text of [
    "Be brief.",
    "Two per rule",
    "On Fridays never",
    "No any",
    "No tables",
    "## Tests (from CLAUDE.md)",
    "`**/*.ts`",
  ])
    expect(source.split(text)).toHaveLength(2);
  expect(await shop.text("CLAUDE.md")).toMatch(/^<!-- kit:sync .*\n\n@AGENTS.md\n/);
  expect(await shop.text(".cursor/rules/asked.mdc")).toContain("Only when it is asked for.");
  expect(await shop.text("CLAUDE.local.md")).toContain("Mine alone.");
  await expect(shop.text(".cursorrules")).rejects.toThrow();

  const lint = guidelines
    .lint()
    .filter(({ rule }) => ["duplicate-guideline", "drift", "contradiction"].includes(rule));
  expect(lint).toEqual([]);
  for (const adopt of [false, true])
    expect((await guidelines.planSync({ ...request, adopt })).in_sync).toBe(true);
  expect((await guidelines.sync(request)).written).toEqual([]);
});
