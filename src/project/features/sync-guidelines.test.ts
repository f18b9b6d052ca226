import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import type { SyncEntry, SyncPlan } from "../../protocol/sync.ts";
import { createTemporaryRepository, type TemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";
import type { OpenProjectOptions, Project } from "../project.ts";

interface Opened extends AsyncDisposable {
  readonly project: Project;
  readonly folder: TemporaryRepository;
  text(path: string): Promise<string>;
}

async function open(
  files: Record<string, string>,
  options: Partial<OpenProjectOptions> = {},
): Promise<Opened> {
  const folder = await createTemporaryRepository(files);
  const project = await openProject({ root: folder.root, ...options });
  return {
    project,
    folder,
    text: async (path) => await readFile(join(folder.root, path), "utf8"),
    async [Symbol.asyncDispose]() {
      await project.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

const actions = ({ entries }: SyncPlan): string[] => entries.map(({ action, path }) => `${action} ${path}`);
const entryOf = (plan: SyncPlan, path: string): SyncEntry | undefined =>
  plan.entries.find((entry) => entry.path === path);

const agents = "# Shop\n\nSells books.\n\n## Style\n\nTabs.\n\n## Tests\n\nOne per rule.\n";

test("AGENTS.md reaches Claude Code by one import, and tools that do not read it by separate files", async () => {
  await using shop = await open({ "AGENTS.md": agents, "packages/api/AGENTS.md": "## Routes\n\nNouns.\n" });
  const request = { source: "agents", targets: ["fw_c", "fw_b", "steering", "gemini"] } as const;
  const plan = await shop.project.guidelines.planSync(request);
  expect(plan).toMatchObject({
    source: "agents",
    source_files: ["AGENTS.md", "packages/api/AGENTS.md"],
    guidelines: 4,
    read_directly: ["Cursor reads AGENTS.md, packages/api/AGENTS.md itself.", "Kiro reads AGENTS.md itself."],
  });
  expect(actions(plan)).toEqual([
    "create .kiro/steering/routes.md",
    "create CLAUDE.md",
    "create GEMINI.md",
    "create packages/api/CLAUDE.md",
    "create packages/api/GEMINI.md",
  ]);
  expect((await readdir(shop.folder.root)).sort()).toEqual([".kit", "AGENTS.md", "packages"]);

  const result = await shop.project.guidelines.sync(request);
  expect(result.written).toHaveLength(5);
  expect(await shop.text("CLAUDE.md")).toMatch(
    /^<!-- kit:sync source=agents .*-->\n\n@AGENTS\.md\n\n<!-- \/kit:sync -->\n$/,
  );
  expect(await shop.text("packages/api/GEMINI.md")).toContain("\n\n@./AGENTS.md\n\n");
  expect(await shop.text(".kiro/steering/routes.md")).toContain(
    'inclusion: fileMatch\nfileMatchPattern: "packages/api/**"\n',
  );
  const again = await shop.project.guidelines.planSync(request);
  expect(again.in_sync).toBe(true);
  expect((await shop.project.guidelines.sync(request)).written).toEqual([]);
  expect(shop.project.guidelines.list({ source: "steering" }).total_count).toBe(1);
  expect(shop.project.guidelines.lint()).toEqual([]);
});

test("text that people wrote in a target stays byte for byte", async () => {
  const byHand = "# Ours\r\n\r\nKeep  this. \r\n\r\n## Deploys\r\nFridays are fine.";
  await using shop = await open({ "CLAUDE.md": "## Style\n\nTabs.\n", "AGENTS.md": byHand });
  const request = { source: "fw_c" } as const;
  await shop.project.guidelines.sync(request);
  const written = await shop.text("AGENTS.md");
  expect(written.startsWith(`${byHand}\r\n\r\n<!-- kit:sync source=fw_c `)).toBe(true);
  expect(written).toContain("## Style\r\n\r\nTabs.");
  await shop.folder.write("CLAUDE.md", "## Style\n\nSpaces.\n");
  expect(actions(await shop.project.guidelines.planSync(request))).toEqual(["update AGENTS.md"]);
  await shop.project.guidelines.sync(request);
  const updated = await shop.text("AGENTS.md");
  expect(updated.startsWith(byHand)).toBe(true);
  expect(updated).toContain("Spaces.");
  expect(updated).not.toContain("Tabs.");
});

test("text of kit's that a person edited is a conflict, and is overwritten only on request", async () => {
  await using shop = await open({ "CLAUDE.md": "## Style\n\nTabs.\n", "AGENTS.md": "# Ours\n\nx\n" });
  const request = { source: "fw_c", targets: ["agents", "steering"] } as const;
  await shop.project.guidelines.sync(request);
  for (const path of ["AGENTS.md", ".kiro/steering/style.md"]) {
    await shop.folder.write(path, (await shop.text(path)).replace("Tabs.", "Tabs, I say."));
  }
  await shop.folder.write("CLAUDE.md", "## Style\n\nSpaces.\n");
  const result = await shop.project.guidelines.sync(request);
  expect(result.written).toEqual([]);
  expect(actions(result)).toEqual(["conflict .kiro/steering/style.md", "conflict AGENTS.md"]);
  expect(entryOf(result, "AGENTS.md")?.reason).toBe("The part that kit writes was edited by hand (line 5).");
  expect(await shop.text("AGENTS.md")).toContain("Tabs, I say.");
  const forced = await shop.project.guidelines.sync({ ...request, overwrite: true });
  expect(forced.written).toEqual([".kiro/steering/style.md", "AGENTS.md"]);
  expect(await shop.text("AGENTS.md")).toContain("Spaces.");
});

test("files of another hand keep their place, and text under the same title is a conflict", async () => {
  await using shop = await open({
    "CLAUDE.md": agents,
    ".kiro/steering/style.md": "---\ninclusion: always\n---\n# House style\n\nOurs.\n",
    ".kiro/steering/other.md": "# Tests\n\nWritten by hand.\n",
    ".kiro/steering/mine.md": "# Shop\n\nSells books.\n",
    ".kiro/steering/ignored/style-2.md": "",
    ".kiro/steering/narrow.md":
      "---\ninclusion: fileMatch\nfileMatchPattern: '*.sql'\n---\n# Style\n\nUpper case.\n",
    ".kiro/steering/style-2.md": "ignored by Git",
    ".gitignore": "style-2.md\n",
  });
  const plan = await shop.project.guidelines.planSync({ source: "fw_c", targets: ["steering"] });
  expect(plan.entries.map(({ action, path, reason }) => [action, path, reason])).toEqual([
    ["unchanged", ".kiro/steering/mine.md", "It says the same already."],
    ["create", ".kiro/steering/style-3.md", undefined],
    [
      "conflict",
      ".kiro/steering/tests.md",
      '.kiro/steering/other.md, line 1, has a "Tests" of its own with other text.',
    ],
  ]);
});

test("a target that is a link to the source, or imports it, needs nothing", async () => {
  await using shop = await open({
    "AGENTS.md": agents,
    "packages/api/AGENTS.md": "## A\n\na\n",
    "packages/api/CLAUDE.md": "See @AGENTS.md first.\n",
  });
  await symlink("AGENTS.md", join(shop.folder.root, "CLAUDE.md"));
  const plan = await shop.project.guidelines.planSync({ source: "agents", targets: ["fw_c"] });
  expect(plan.entries.map(({ action, path, reason }) => [action, path, reason])).toEqual([
    ["unchanged", "CLAUDE.md", "It is the same file as AGENTS.md."],
    ["unchanged", "packages/api/CLAUDE.md", "It imports AGENTS.md already."],
  ]);
});

test("patterns and inclusion are carried where the target knows them, and losses are named", async () => {
  await using shop = await open({
    ".kiro/steering/ts.md":
      "---\ninclusion: fileMatch\nfileMatchPattern: ['**/*.{ts,tsx}', 'a b/*.ts']\n---\n# Types\n\nStrict. See #[[file:docs/x.md]].\n",
    ".kiro/steering/asked.md": "---\ninclusion: manual\n---\n# Asked\n\nRarely.\n",
    ".kiro/steering/auto.md":
      "---\ninclusion: auto\nname: deploy\ndescription: 'When deploying: read'\n---\n# Deploys\n\nCarefully.\n",
  });
  const targets = ["agents", "fw_c", "fw_b"] as const;
  const plan = await shop.project.guidelines.sync({ source: "steering", targets });
  expect(actions(plan)).toEqual([
    "create .claude/rules/types.md",
    "create .cursor/rules/asked.mdc",
    "create .cursor/rules/deploys.mdc",
    "create .cursor/rules/types.mdc",
    "create AGENTS.md",
  ]);
  const frontMatter = async (path: string): Promise<readonly string[]> =>
    (await shop.text(path)).split("\n---\n")[0]?.split("\n").slice(2) ?? [];
  expect(await frontMatter(".cursor/rules/types.mdc")).toEqual([
    "description:",
    "globs: **/*.ts,**/*.tsx,a b/*.ts",
    "alwaysApply: false",
  ]);
  expect(await frontMatter(".cursor/rules/deploys.mdc")).toEqual([
    'description: "When deploying: read"',
    "globs:",
    "alwaysApply: false",
  ]);
  expect(await frontMatter(".claude/rules/types.md")).toEqual([
    "paths:",
    '  - "**/*.{ts,tsx}"',
    '  - "a b/*.ts"',
  ]);
  expect(await shop.text("AGENTS.md")).toContain(
    "## Types\n\n_File pattern: `**/*.{ts,tsx},a b/*.ts`_\n\nStrict.",
  );
  expect(plan.left_out).toHaveLength(4);
  expect(plan.left_out[0]).toBe(
    '"Asked" (.kiro/steering/asked.md) is loaded on request only, which AGENTS.md cannot say.',
  );
  expect(entryOf(plan, "AGENTS.md")?.losses).toEqual([
    '"Types": A section cannot be limited to **/*.{ts,tsx},a b/*.ts in AGENTS.md; the pattern is kept as a line to read.',
    '"Types": References to docs/x.md are not followed in AGENTS.md; they stay as text.',
  ]);
  const list = shop.project.guidelines.list({ file: "src/a.tsx", source: "fw_b" });
  expect(list.guidelines.map(({ title }) => title)).toEqual(["Types", "Asked", "Deploys"]);
});

test("text that kit wrote for a guideline that is gone is removed, unless a person edited it", async () => {
  await using shop = await open({ "CLAUDE.md": agents, "AGENTS.md": "# By hand\n" });
  const request = { source: "fw_c", targets: ["fw_b", "agents"] } as const;
  await shop.project.guidelines.sync(request);
  await shop.folder.write(".cursor/rules/tests.mdc", `${await shop.text(".cursor/rules/tests.mdc")}mine\n`);
  await shop.folder.write("CLAUDE.md", "## Style\n\nTabs.\n");
  const plan = await shop.project.guidelines.sync(request);
  expect(actions(plan)).toEqual([
    "delete .cursor/rules/shop.mdc",
    "unchanged .cursor/rules/style.mdc",
    "conflict .cursor/rules/tests.mdc",
    "update AGENTS.md",
  ]);
  expect((await readdir(join(shop.folder.root, ".cursor/rules"))).sort()).toEqual(["style.mdc", "tests.mdc"]);
});

test("when the source setting changes, the new source's files lose the text of the earlier sync", async () => {
  await using shop = await open({
    "AGENTS.md": "## Style\n\nTabs.\n",
    "CLAUDE.md": "# Claude\n\n## Tone\n\nShort.\n",
  });
  await shop.project.guidelines.sync({ source: "agents" });
  const plan = await shop.project.guidelines.sync({ source: "fw_c", targets: ["agents"] });
  expect(actions(plan)).toEqual(["update AGENTS.md", "update CLAUDE.md"]);
  expect(await shop.text("CLAUDE.md")).toBe("# Claude\n\n## Tone\n\nShort.\n");
  expect(await shop.text("AGENTS.md")).toContain("## Tone");
});

test("nothing is synced from what a sync wrote itself, from nothing, or to nothing", async () => {
  await using shop = await open({ "AGENTS.md": agents });
  const refused = async (request: Parameters<Project["guidelines"]["planSync"]>[0]): Promise<string> =>
    await shop.project.guidelines.planSync(request).then(
      () => "accepted",
      (error: Error) => error.message,
    );
  expect(await refused({})).toContain("one source of truth");
  expect(await refused({ source: "agents" })).toContain("needs a target");
  expect(await refused({ source: "fw_b" })).toContain("There is no hand-written guideline in Cursor's rules");
  await shop.project.guidelines.sync({ source: "agents", targets: ["fw_b"] });
  expect(await refused({ source: "fw_b" })).toContain("There is no hand-written guideline in Cursor's rules");
});

test("source and targets come from the configuration, and personal files are not synced", async () => {
  await using shop = await open(
    { "CLAUDE.md": "## Style\n\nTabs.\n", "CLAUDE.local.md": "## Secret\n\nMine.\n" },
    { config: { guidelines: { source: "fw_c", targets: ["agents"] } } },
  );
  expect((await shop.project.guidelines.sync()).written).toEqual(["AGENTS.md"]);
  expect(await shop.text("AGENTS.md")).not.toContain("Mine.");
});

test("a read-only project plans and does not write", async () => {
  await using shop = await open({ "AGENTS.md": agents }, { readOnly: true, indexFile: ":memory:" });
  const request = { source: "agents", targets: ["fw_c"] } as const;
  expect((await shop.project.guidelines.planSync(request)).in_sync).toBe(false);
  await expect(shop.project.guidelines.sync(request)).rejects.toMatchObject({ code: "forbidden" });
  expect(await readdir(shop.folder.root)).toEqual(["AGENTS.md"]);
});

const leadsOut = (path: string): string =>
  `${path} leads out of the project. Put a plain file or folder of the project there, or leave this target out.`;

test.each<readonly [string, (folder: string) => Promise<unknown>]>([
  ["a link out of the project", (folder) => symlink(tmpdir(), folder)],
  ["a link to itself", (folder) => symlink(basename(folder), folder)],
  ["one of two links to each other", (folder) => symlink("there", folder)],
  ["a link to nothing outside", (folder) => symlink("/nowhere/at/all", folder)],
  ["a link to a file", (folder) => symlink("../CLAUDE.md", folder)],
  ["a file", (folder) => writeFile(folder, "in the way\n")],
  ["a pipe", (folder) => promisify(execFile)("mkfifo", [folder])],
])("a sync into a folder that is %s ends, and says why nothing is written", async (_name, arrange) => {
  await using shop = await open({ "CLAUDE.md": `${agents}\n## Style\n\nTwice.\n` });
  const format = { ".kiro/steering": "steering", ".cursor/rules": "fw_b", ".claude/rules": "fw_c" } as const;
  const globs = "---\nalwaysApply: false\nglobs: src/**\n---\n# Rule\n\nSo.\n";
  for (const [folder, target] of Object.entries(format)) {
    const at = join(shop.folder.root, folder);
    await mkdir(dirname(at), { recursive: true });
    await arrange(at);
    await symlink(basename(at), join(dirname(at), "there")).catch(() => undefined);
    // Only a rule with a pattern has a file of its own for Claude Code.
    if (target === "fw_c") await rm(join(shop.folder.root, ".cursor/rules"), { force: true });
    if (target === "fw_c") await shop.folder.write(".cursor/rules/rule.mdc", globs);
    const request = { source: target === "fw_c" ? "fw_b" : "fw_c", targets: [target] } as const;
    const { entries, written } = await shop.project.guidelines.sync({ ...request, overwrite: true });
    const targetEntries = entries.filter(({ path }) => path.startsWith(folder));
    expect(targetEntries.length).toBeGreaterThan(0);
    for (const { action, reason } of targetEntries) {
      expect([action, reason]).toEqual(["conflict", expect.stringContaining(folder)]);
      expect(reason).toMatch(/Put a plain file or folder of the project there/);
    }
    expect(written).toEqual([]);
  }
});

test("targets that are no text, lead outside or leave a fence open are conflicts", async () => {
  await using shop = await open({
    "AGENTS.md": agents,
    "a/AGENTS.md": "## A\n\na\n",
    "b/AGENTS.md": "## B\n\nb\n",
    "b/CLAUDE.md": "# Open\n\n```\nnever closed\n",
  });
  await symlink("/etc/hostname", join(shop.folder.root, "CLAUDE.md"));
  await shop.folder.write("a/CLAUDE.md", "");
  await rm(join(shop.folder.root, "a/CLAUDE.md"));
  await symlink("AGENTS.md", join(shop.folder.root, "a/x.md"));
  const plan = await shop.project.guidelines.planSync({ source: "agents", targets: ["fw_c"] });
  expect(plan.entries.map(({ action, path, reason }) => [action, path, reason])).toEqual([
    ["conflict", "CLAUDE.md", leadsOut("CLAUDE.md")],
    ["create", "a/CLAUDE.md", undefined],
    ["conflict", "b/CLAUDE.md", "The file leaves a code fence, a comment or an HTML block open."],
  ]);
});

test("a target that Git ignores is seen all the same", async () => {
  await using shop = await open({
    "AGENTS.md": agents,
    "CLAUDE.md": "# Mine\n",
    ".gitignore": "CLAUDE.md\n",
  });
  const plan = await shop.project.guidelines.planSync({ source: "agents", targets: ["fw_c"] });
  expect(actions(plan)).toEqual(["update CLAUDE.md"]);
  expect(entryOf(plan, "CLAUDE.md")?.after?.startsWith("# Mine\n\n<!-- kit:sync")).toBe(true);
});

const two = { "AGENTS.md": agents, "CLAUDE.md": "# Ours\n", ".cursor/rules/mine.mdc": "# Mine\n\nx\n" };
const toTwo = { source: "agents", targets: ["fw_c", "steering", "gemini"] } as const;

test.each<readonly [string, readonly string[], (shop: Opened) => Promise<unknown>]>([
  ["a target", ["CLAUDE.md"], ({ folder }) => folder.write("CLAUDE.md", "# Ours, and more\n")],
  ["a target that was absent", ["GEMINI.md"], ({ folder }) => folder.write("GEMINI.md", "mine\n")],
  ["a target that goes", ["CLAUDE.md"], ({ folder }) => rm(join(folder.root, "CLAUDE.md"))],
  [
    "the source",
    ["CLAUDE.md", "GEMINI.md", "packages/api/CLAUDE.md", "packages/api/GEMINI.md", ".kiro/steering/a.md"],
    async ({ folder }) => {
      await folder.write("packages/api/AGENTS.md", "## A\n\nb\n");
      await folder.write("CLAUDE.md", "# Ours, too\n");
      await folder.write("GEMINI.md", "x\n");
    },
  ],
  [
    "the target of a link",
    ["CLAUDE.md"],
    async ({ folder }) => {
      await folder.write("other.md", "# Another\n");
      await rm(join(folder.root, "CLAUDE.md"));
      await symlink("other.md", join(folder.root, "CLAUDE.md"));
    },
  ],
])(
  "a sync writes nothing where %s changed after its preview, and names the files",
  async (...[, files, change]) => {
    await using shop = await open(two);
    const { entries } = await shop.project.guidelines.planSync(toTwo);
    await change(shop);
    const before = await Promise.all(entries.map(({ path }) => shop.text(path).catch(() => undefined)));
    const write = shop.project.guidelines.sync({ ...toTwo, overwrite: true, expected: entries });
    const error = await write.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({
      code: "conflict",
      message: expect.stringContaining("nothing was written"),
    });
    expect((error as { meta: { files: string[] } }).meta.files.sort()).toEqual([...files].sort());
    expect(await Promise.all(entries.map(({ path }) => shop.text(path).catch(() => undefined)))).toEqual(
      before,
    );
    const again = await shop.project.guidelines.planSync(toTwo);
    const { written } = await shop.project.guidelines.sync({
      ...toTwo,
      overwrite: true,
      expected: again.entries,
    });
    expect(written.length).toBeGreaterThan(0);
  },
);

test("a file that a sync leaves unchanged can change after its preview", async () => {
  await using shop = await open({ ...two, "AGENTS.md": agents });
  await shop.project.guidelines.sync(toTwo);
  await shop.folder.write("GEMINI.md", "");
  const { entries } = await shop.project.guidelines.planSync(toTwo);
  expect(entries.find(({ path }) => path === "CLAUDE.md")?.action).toBe("unchanged");
  await shop.folder.write("CLAUDE.md", `# Mine\n\n${await shop.text("CLAUDE.md")}`);
  await shop.folder.write("README.md", "# Shop\n");
  const { written } = await shop.project.guidelines.sync({ ...toTwo, expected: entries });
  expect(written).toEqual(["GEMINI.md"]);
  expect(await shop.text("CLAUDE.md")).toMatch(/^# Mine\n/);
});
