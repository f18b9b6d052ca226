// biome-ignore-all lint/suspicious/noTemplateCurlyInString: settings write variables in this form
import { chmod, mkdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { SyncPlan, SyncWrite } from "../../protocol/sync.ts";
import { rounds } from "../../testing/campaign.suite.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";
import type { OpenProjectOptions } from "../project.ts";

const skill = "---\nname: review\ndescription: Reviews.\nallowed-tools: Bash(git:*)\n---\nDo it.\n";
const files = {
  ".agents/skills/review/SKILL.md": skill,
  ".agents/skills/review/scripts/run.sh": "echo hi\n",
  ".agents/skills/notes.md": "For kit.\n",
};

async function open(texts: Record<string, string>, options: Partial<OpenProjectOptions> = {}) {
  const folder = await createTemporaryRepository(texts);
  const project = await openProject({ root: folder.root, ...options });
  const path = (name: string): string => join(folder.root, name);
  const request = { with: { skills: "agents" }, targets: ["fw_c", "steering", "codex", "fw_b"] } as const;
  return {
    path,
    text: (name: string) => readFile(path(name), "utf8").catch(() => undefined),
    write: (name: string, text: string | Uint8Array) => writeFile(path(name), text),
    plan: (more: SyncWrite = {}) => project.guidelines.planSync({ ...request, ...more }),
    sync: (more: SyncWrite = {}) => project.guidelines.sync({ ...request, ...more }),
    async [Symbol.asyncDispose]() {
      await project.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

const due = ({ entries }: SyncPlan): readonly string[] =>
  entries.filter(({ action }) => action !== "unchanged").map(({ action, path }) => `${action} ${path}`);

test("skills are copied byte for byte to the tools that do not read the source", async () => {
  await using shop = await open(files);
  await chmod(shop.path(".agents/skills/review/scripts/run.sh"), 0o755);
  await shop.write(".agents/skills/review/logo.png", new Uint8Array([137, 80, 0, 255]));
  const plan = await shop.plan();
  expect(due(plan)).toEqual([
    "create .claude/skills/review/SKILL.md",
    "create .claude/skills/review/logo.png",
    "create .claude/skills/review/scripts/run.sh",
    "create .kiro/skills/review/SKILL.md",
    "create .kiro/skills/review/logo.png",
    "create .kiro/skills/review/scripts/run.sh",
  ]);
  expect(plan).toMatchObject({
    in_sync: false,
    read_directly: ["Codex reads .agents/skills itself.", "Cursor reads .agents/skills itself."],
    left_out: [expect.stringContaining(".agents/skills/notes.md is in no folder of its own")],
  });
  expect(plan.entries[0]?.losses).toEqual([
    expect.stringContaining("runs these without asking: Bash(git:*)."),
  ]);
  expect(plan.entries[1]?.after).toMatch(/^not text: 4 bytes, sha256 [0-9a-f]{16}\n$/);
  const expected = plan.entries.map(({ path, digest }) => ({ path, digest }));
  const { written } = await shop.sync({ expected });
  expect(written).toHaveLength(7);
  expect([...(await readFile(shop.path(".claude/skills/review/logo.png")))]).toEqual([137, 80, 0, 255]);
  expect((await stat(shop.path(".kiro/skills/review/scripts/run.sh"))).mode & 0o111).not.toBe(0);
  expect(await shop.plan()).toMatchObject({ in_sync: true });
  expect((await shop.sync()).written).toEqual([]);
});

test("a change of the source reaches the copies, and what is gone is removed", async () => {
  await using shop = await open(files);
  await shop.sync();
  await shop.write(".agents/skills/review/SKILL.md", `${skill}More.\n`);
  await rm(shop.path(".agents/skills/review/scripts"), { recursive: true });
  expect(due(await shop.plan())).toEqual([
    "update .claude/skills/review/SKILL.md",
    "delete .claude/skills/review/scripts/run.sh",
    "update .kiro/skills/review/SKILL.md",
    "delete .kiro/skills/review/scripts/run.sh",
  ]);
  await shop.sync();
  expect(await shop.text(".claude/skills/review/SKILL.md")).toBe(`${skill}More.\n`);
  expect(await shop.text("kit.synced.json")).not.toContain("run.sh");
  expect((await shop.plan()).in_sync).toBe(true);
});

test("a copy that a person edited, and a file of a person, are conflicts until --overwrite", async () => {
  await using shop = await open({
    ...files,
    ".kiro/skills/review/SKILL.md": "Mine.\n",
    ".claude/skills/own/SKILL.md": "Own.\n",
  });
  await shop.sync();
  await shop.write(".claude/skills/review/SKILL.md", "Edited.\n");
  const { entries } = await shop.sync();
  expect(
    entries.flatMap(({ action, path, reason }) => (action === "conflict" ? [[path, reason]] : [])),
  ).toEqual([
    [".claude/skills/review/SKILL.md", "kit wrote it, and it was edited by hand."],
    [".kiro/skills/review/SKILL.md", "kit did not write it."],
  ]);
  expect([
    await shop.text(".claude/skills/review/SKILL.md"),
    await shop.text(".kiro/skills/review/SKILL.md"),
  ]).toEqual(["Edited.\n", "Mine.\n"]);
  await shop.sync({ overwrite: true });
  expect(await shop.text(".kiro/skills/review/SKILL.md")).toBe(skill);
  expect(await shop.text(".claude/skills/own/SKILL.md")).toBe("Own.\n");
  expect((await shop.plan()).in_sync).toBe(true);
  await shop.write(".claude/skills/review/scripts/run.sh", "mine\n");
  await rm(shop.path(".agents/skills/review/scripts"), { recursive: true });
  await shop.sync({ overwrite: true });
  expect(await shop.text(".claude/skills/review/scripts/run.sh")).toBe("mine\n");
});

test("after a stop in the middle, the next sync goes on; without its record, kit replaces nothing", async () => {
  await using shop = await open(files);
  await shop.sync();
  const record = await shop.text("kit.synced.json");
  await shop.write(".agents/skills/review/SKILL.md", `${skill}More.\n`);
  // One file is new already, the record is not.
  await shop.write(".claude/skills/review/SKILL.md", `${skill}More.\n`);
  expect(due(await shop.plan())).toEqual(["update .kiro/skills/review/SKILL.md"]);
  await shop.write("kit.synced.json", `<<<<<<< ours\n${record}`);
  expect(due(await shop.plan())).toEqual(["conflict .kiro/skills/review/SKILL.md"]);
});

test("no link leads a copy out, and no record removes another file", async () => {
  await using outside = await createTemporaryRepository({ "secret.txt": "secret" });
  await using shop = await open({
    ...files,
    ".env": "KEY=1",
    "src/a.ts": "1",
    "kit.synced.json": JSON.stringify({
      ".claude/skills/../../src/a.ts": "6b86b273ff34fce1",
      "src/a.ts": "6b86b273ff34fce1",
    }),
  });
  await symlink(join(outside.root, "secret.txt"), shop.path(".agents/skills/review/out"));
  await symlink("../../../.env", shop.path(".agents/skills/review/env"));
  await shop.write(".agents/skills/review/.env.local", "KEY=1");
  await symlink(outside.root, shop.path(".kiro"));
  const { left_out, entries } = await shop.plan({ targets: ["fw_c"] });
  expect(left_out.join("\n")).toContain("review/out leads out of the project, and is not copied.");
  expect(left_out.join("\n")).toContain("review/env is a link out of .agents/skills, and is not copied.");
  expect(left_out.join("\n")).toContain(".env.local can hold secrets");
  expect(entries.map(({ path }) => path)).toEqual([
    ".claude/skills/review/SKILL.md",
    ".claude/skills/review/scripts/run.sh",
  ]);
  await expect(shop.sync()).rejects.toMatchObject({ code: "forbidden" });
  await shop.sync({ targets: ["fw_c"] });
  expect(await shop.text("src/a.ts")).toBe("1");
  expect(await readFile(join(outside.root, "secret.txt"), "utf8")).toBe("secret");
});

test("a folder that is a link to the source needs no copy", async () => {
  await using shop = await open(files);
  await mkdir(shop.path(".claude"));
  await symlink("../.agents/skills", shop.path(".claude/skills"));
  const plan = await shop.plan({ targets: ["fw_c"] });
  expect(plan).toMatchObject({
    in_sync: true,
    entries: [
      { path: ".claude/skills", reason: ".claude/skills is a link to .agents/skills, which is the source." },
    ],
  });
});

test("a target that is a link to another place is a conflict that names the place, and nothing is written there", async () => {
  await using shop = await open({
    ".agents/skills/hooks/SKILL.md": skill,
    ".agents/skills/hooks/pre-commit": "#!/bin/sh\n",
    ".git/hooks/x": "",
    ".kit/x": "",
    "src/a.ts": "",
  });
  await mkdir(shop.path(".claude"));
  await mkdir(shop.path(".kiro/skills"), { recursive: true });
  await symlink("../.git", shop.path(".claude/skills"));
  await symlink("../../.git/hooks", shop.path(".kiro/skills/hooks"));
  const { entries, written } = await shop.sync({ targets: ["fw_c", "steering"], overwrite: true });
  expect(entries.map(({ action, path }) => `${action} ${path}`)).toEqual([
    "conflict .claude/skills",
    "conflict .kiro/skills/hooks/SKILL.md",
    "conflict .kiro/skills/hooks/pre-commit",
  ]);
  expect(entries[0]?.reason).toContain("It is a link to .git, and kit writes only to .claude/skills itself.");
  expect(entries[1]?.reason).toContain("is a link to .git/hooks/SKILL.md");
  expect(written).toEqual([]);
  await symlink("src", shop.path(".junie"));
  expect(due(await shop.plan({ targets: ["junie"] }))).toEqual(["conflict .junie/skills"]);
  await using servers = await open(
    { "src/a.ts": "" },
    { config: { mcp: { servers: { a: { command: "x" } } } } },
  );
  await symlink("src", servers.path(".cursor"));
  const plan = await servers.plan({ with: { mcp: "kit" }, targets: ["fw_b"] });
  expect(plan.entries[0]?.reason).toContain("It is a link to src/mcp.json");
  await expect(stat(shop.path(".git/hooks/pre-commit"))).rejects.toMatchObject({ code: "ENOENT" });
});

const remote = { url: "https://example.org/mcp", headers: { Authorization: "Bearer ${TOKEN}" } };
const mcp = { servers: { github: remote } };
const request = { with: { mcp: "kit" }, targets: ["fw_c", "steering", "copilot", "codex"] } as const;

test("a server reaches each tool's file, and the rest of the file stays byte for byte", async () => {
  const vscode =
    '// ours\n{\n\t"inputs": [], // none\n\t"servers": {\n\t\t"mine": { "command": "me" } // keep\n\t}\n}\n';
  const codex = '# codex\nmodel = "x" # fast\n';
  await using shop = await open(
    { ".vscode/mcp.json": vscode, ".codex/config.toml": codex },
    { config: { mcp } },
  );
  await shop.sync(request);
  expect(JSON.parse((await shop.text(".mcp.json")) ?? "")).toEqual({
    mcpServers: { github: { type: "http", ...remote } },
  });
  expect(await shop.text(".codex/config.toml")).toBe(
    `${codex}\n[mcp_servers.github]\nurl = "https://example.org/mcp"\nbearer_token_env_var = "TOKEN"\n`,
  );
  const after = (await shop.text(".vscode/mcp.json")) ?? "";
  expect(after).toContain('"Authorization": "Bearer ${env:TOKEN}"');
  expect(after.startsWith(vscode.slice(0, vscode.indexOf(" // keep")))).toBe(true);
  expect((await shop.plan(request)).in_sync).toBe(true);
});

test("keys that a tool or a person adds to a server stay, and an edited server is a conflict", async () => {
  const config: { mcp: { servers: Record<string, object> } } = { mcp: { servers: { github: remote } } };
  await using shop = await open({}, { config });
  await shop.sync(request);
  const kiro = ".kiro/settings/mcp.json";
  const written = (await shop.text(kiro)) ?? "";
  await shop.write(kiro, written.replace('"url"', '"autoApprove": ["get"],\n      "url"'));
  expect((await shop.plan(request)).in_sync).toBe(true);
  config.mcp.servers.github = { ...remote, url: "https://example.org/v2" };
  await shop.sync(request);
  expect(await shop.text(kiro)).toBe(
    written.replace('"url"', '"autoApprove": ["get"],\n      "url"').replace("/mcp", "/v2"),
  );
  await shop.write(".mcp.json", ((await shop.text(".mcp.json")) ?? "").replace("/v2", "/mine"));
  config.mcp.servers.github = { ...remote, url: "https://example.org/v3" };
  const { entries } = await shop.sync(request);
  expect(entries.find(({ path }) => path === ".mcp.json")).toMatchObject({
    action: "conflict",
    reason: "kit wrote github, and it was edited by hand.",
  });
  expect(await shop.text(".mcp.json")).toContain("/mine");
  delete config.mcp.servers.github;
  config.mcp.servers.other = { command: "x" };
  const last = await shop.plan(request);
  expect(last.entries.find(({ path }) => path === kiro)).toMatchObject({
    action: "conflict",
    reason: "github is gone from the source, and has keys that kit did not write: autoApprove.",
  });
  // As a part of rules: what a person edited is replaced with --overwrite, and never removed.
  await shop.sync({ ...request, overwrite: true });
  expect(Object.keys(JSON.parse((await shop.text(kiro)) ?? "").mcpServers)).toEqual(["github", "other"]);
  expect((await shop.plan(request)).in_sync).toBe(true);
});

test("one tool's file can be the source, and a broken file is named without its text", async () => {
  const broken = '{\n"mcpServers": { "x": { "env": { "K": "s3cret" } } },, }';
  await using shop = await open({
    ".cursor/mcp.json": '{"mcpServers": {"a": {"command": "x", "env": {"A": "${env:A}"}}}}',
  });
  const from = { ...request, with: { mcp: "fw_b" } } as const;
  await shop.sync(from);
  expect(JSON.parse((await shop.text(".mcp.json")) ?? "").mcpServers.a.env).toEqual({ A: "${A}" });
  await shop.write(".mcp.json", broken);
  await shop.write(".codex/config.toml", "token = s3cret");
  const { entries } = await shop.sync(from);
  const reasons = entries.filter(({ action }) => action === "conflict").map(({ reason }) => reason);
  expect(reasons).toEqual(["Line 1 is not TOML.", "Line 2 is not JSON: a key in double quotes is missing."]);
  expect(await shop.text(".mcp.json")).toBe(broken);
  await shop.write(".cursor/mcp.json", broken);
  await expect(shop.plan(from)).rejects.toMatchObject({
    code: "invalid_request",
    message: expect.not.stringContaining("s3cret"),
  });
});

test("a sync never removes what a person wrote, even if it equals the source", async () => {
  const config: { mcp: { servers: Record<string, object> } } = {
    mcp: { servers: { github: remote, constructor: { command: "c" } } },
  };
  const cursors = { ...remote, headers: { Authorization: "Bearer ${env:TOKEN}" } };
  const own = JSON.stringify({ mcpServers: { github: cursors } });
  await using shop = await open(
    {
      ...files,
      ".claude/skills/review/SKILL.md": skill,
      ".cursor/mcp.json": own,
      ".codex/config.toml": "[mcp_servers]\n",
    },
    { config },
  );
  const both = { with: { skills: "agents", mcp: "kit" }, targets: ["fw_c", "fw_b", "codex"] } as const;
  await shop.sync(both);
  expect(await shop.text(".codex/config.toml")).toContain('[mcp_servers.constructor]\ncommand = "c"');
  const record = (await shop.text("kit.synced.json")) ?? "";
  expect(record).toContain(".claude/skills/review/scripts/run.sh");
  expect(record).toContain(".cursor/mcp.json#constructor");
  expect(record).not.toMatch(/SKILL\.md|cursor\/mcp\.json#github/);
  config.mcp.servers = { constructor: { command: "c" } };
  await rm(shop.path(".agents/skills/review"), { recursive: true });
  await mkdir(shop.path(".agents/skills/next"));
  await shop.write(".agents/skills/next/SKILL.md", skill);
  await shop.sync(both);
  expect(await shop.text(".claude/skills/review/SKILL.md")).toBe(skill);
  expect(await shop.text(".claude/skills/review/scripts/run.sh")).toBeUndefined();
  expect(Object.keys(JSON.parse((await shop.text(".cursor/mcp.json")) ?? "").mcpServers)).toContain("github");
});

test("a sync that stopped in the middle has recorded the files that it made", async () => {
  const more = Array.from({ length: 20 }, (_, index) => [`.agents/skills/review/a${index}`, "x"]);
  await using shop = await open({
    ...files,
    ...Object.fromEntries(more),
    ".kiro/skills/review/scripts/x": "",
  });
  const interfere = async (): Promise<void> => {
    while ((await shop.text(".claude/skills/review/SKILL.md")) === undefined) await setImmediate();
    await shop.write(".kiro/skills/review/scripts/run.sh", "mine");
  };
  const [stopped] = await Promise.allSettled([shop.sync(), interfere()]);
  expect(stopped).toMatchObject({
    reason: { code: "conflict", meta: { written: expect.arrayContaining(["kit.synced.json"]) } },
  });
  await rm(shop.path(".agents/skills/review/scripts"), { recursive: true });
  await shop.sync();
  expect(await shop.text(".claude/skills/review/scripts/run.sh")).toBeUndefined();
  expect(await shop.text(".kiro/skills/review/scripts/run.sh")).toBe("mine");
});

test("settings that are not UTF-8, or too large, are conflicts and stay byte for byte", async () => {
  await using shop = await open({ ".cursor/x": "", ".vscode/x": "" }, { config: { mcp } });
  const latin = Buffer.from('{"mcpServers": {"caf\xe9": {"command": "x"}}}', "latin1");
  await shop.write(".cursor/mcp.json", latin);
  await shop.write(".vscode/mcp.json", `{"a": "${"x".repeat(9_000_000)}"}`);
  const { entries } = await shop.sync({ ...request, targets: ["fw_b", "copilot"], overwrite: true });
  expect(entries.map(({ action, reason }) => [action, reason])).toEqual([
    ["conflict", "It is not UTF-8 text."],
    ["conflict", "It is larger than 1 MiB, the most that kit reads of settings."],
  ]);
  expect(latin.equals(await readFile(shop.path(".cursor/mcp.json")))).toBe(true);
  await expect(shop.plan({ with: { mcp: "fw_b" }, targets: ["fw_c"] })).rejects.toThrow(
    ".cursor/mcp.json: It is not UTF-8 text.",
  );
});

test("skills of more than 32 MiB are refused, and a plan shows at most 16 MiB of texts", async () => {
  await using shop = await open(files);
  const large = (name: string) => shop.write(`.agents/skills/review/${name}`, "x".repeat(9 * 1024 * 1024));
  for (const name of ["a.txt", "b.txt"]) await large(name);
  const { entries } = await shop.plan({ targets: ["fw_c"] });
  expect(entries.map(({ after }) => after?.slice(0, 12))).toContain("not shown: 9");
  expect(JSON.stringify(entries).length).toBeLessThan(17 * 1024 * 1024);
  for (const name of ["c.txt", "d.txt"]) await large(name);
  await expect(shop.plan()).rejects.toThrow("The skills in .agents/skills have more than 32 MiB; at most");
});

test("without skills, servers or a target, the error says what to name", async () => {
  await using shop = await open({ "a.md": "" });
  await expect(shop.plan()).rejects.toThrow("There is no skill in .agents/skills");
  await expect(shop.plan(request)).rejects.toThrow(
    "There is no MCP server in kit's configuration (mcp.servers)",
  );
  await expect(shop.plan({ targets: ["zed"] })).rejects.toThrow("needs a target beside its source");
  await using locked = await open(files, { readOnly: true });
  await expect(locked.sync()).rejects.toMatchObject({ code: "forbidden" });
});

const name = fc.stringMatching(/^[a-z]{1,3}$/);
const tree = fc.dictionary(name, fc.uint8Array({ maxLength: 20 }), { minKeys: 1, maxKeys: 4 });

test("after any two states of the source, every tool has the files of the last one and no other", async () => {
  await fc.assert(
    fc.asyncProperty(tree, tree, async (first, second) => {
      await using shop = await open({ ".agents/skills/x/SKILL.md": skill });
      for (const state of [first, second]) {
        await rm(shop.path(".agents/skills/x"), { recursive: true });
        await mkdir(shop.path(".agents/skills/x"));
        await shop.write(".agents/skills/x/SKILL.md", skill);
        for (const [file, bytes] of Object.entries(state))
          await shop.write(`.agents/skills/x/${file}`, bytes);
        const { written } = await shop.sync();
        expect(written.filter((path) => path.includes(".."))).toEqual([]);
        expect((await shop.plan()).in_sync).toBe(true);
      }
      for (const [file, bytes] of Object.entries(second))
        expect(Buffer.compare(await readFile(shop.path(`.claude/skills/x/${file}`)), bytes)).toBe(0);
      for (const file of Object.keys(first))
        if (!Object.hasOwn(second, file)) expect(await shop.text(`.claude/skills/x/${file}`)).toBeUndefined();
    }),
    { numRuns: rounds(2, 40) },
  );
});
