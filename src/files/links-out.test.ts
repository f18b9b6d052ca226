import { mkdir, readdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { stateFolder } from "../app/state-folder.ts";
import { writeTemplate } from "../cli/init/write-template.ts";
import { openProject } from "../project/open-project.ts";
import { virtual } from "../sandboxes/virtual/virtual-sandbox.ts";
import { createTemporaryRepository } from "../testing/temporary-repository.ts";

const owner = { agent: "a", instance_id: "1", session: "default" };

/** Functions that write kit's own files of a project, with the paths that could be links. */
const writers: readonly (readonly [string, readonly string[], (root: string) => Promise<unknown>])[] = [
  [
    "sessions, engine and announcements",
    [".kit", ".kit/engine", ".kit/sessions.db", ".kit/.gitignore", ".kit/servers", ".kit/engine/engine.db"],
    async (root) => stateFolder(root),
  ],
  [
    "workspaces",
    [".kit", ".kit/sandboxes"],
    async (root) => {
      const sandbox = await virtual().open({ ...owner, project_root: root });
      await sandbox.writeFile("a.txt", "KIT-WROTE");
    },
  ],
  [
    "files of kit init and kit skill new",
    [".agents", ".agents/skills", ".agents/skills/a", "src", "src/agents"],
    (root) =>
      writeTemplate(root, [
        { path: ".agents/skills/a/SKILL.md", content: "KIT-WROTE" },
        { path: "src/agents/a.ts", content: "KIT-WROTE" },
      ]),
  ],
];

const cases = writers.flatMap(([name, links, write]) => links.map((link) => [name, link, write] as const));

test.each(cases)(
  "%s are not written through %s if it is a link out of the project, and the error names the link",
  async (...[, link, write]) => {
    await using folder = await createTemporaryRepository();
    await using outside = await createTemporaryRepository();
    await mkdir(join(folder.root, link, ".."), { recursive: true });
    for (const target of [
      outside.root,
      join(outside.root, "nothing"),
      link.slice(link.lastIndexOf("/") + 1),
    ]) {
      await symlink(target, join(folder.root, link));
      await expect(write(folder.root)).rejects.toMatchObject({
        name: "KitError",
        message: expect.stringContaining(link),
      });
      expect(await readdir(outside.root)).toEqual([]);
      await rm(join(folder.root, link));
    }
  },
);

test.each([".kit", ".kit/index.db", ".kit/index.db-wal", ".kit/index.db-seal"])(
  "the index is stored elsewhere while %s is a link out of the project",
  async (link) => {
    await using folder = await createTemporaryRepository({ "CLAUDE.md": "# A\n" });
    await using outside = await createTemporaryRepository();
    await mkdir(join(folder.root, link, ".."), { recursive: true });
    await symlink(link === ".kit" ? outside.root : join(outside.root, "created"), join(folder.root, link));
    const project = await openProject({ root: folder.root });
    expect(project.guidelines.list({}).total_count).toBeGreaterThan(0);
    await project.close();
    expect(await readdir(outside.root)).toEqual([]);
  },
);

test("a link that stays in the project is followed", async () => {
  await using folder = await createTemporaryRepository({ "state/a.txt": "" });
  await symlink("state", join(folder.root, ".kit"));
  expect(stateFolder(folder.root)).toBe(join(folder.root, ".kit"));
  expect(await readdir(join(folder.root, "state"))).toContain(".gitignore");
});
