import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { testFolder } from "../../testing/test-folder.ts";
import type { Check } from "../doctor/checks.ts";
import { withoutKeys } from "../testing/agents-project.ts";
import { runKit } from "../testing/run-kit.ts";
import { createSampleProject } from "../testing/sample-project.ts";

const project = await createSampleProject();
afterAll(() => project[Symbol.asyncDispose]());

async function examine(
  cwd: string,
  ...args: readonly string[]
): Promise<{ ok: boolean; of(name: string): Check | undefined }> {
  const { stdout, exitCode } = await runKit(["doctor", "--json", ...args], { cwd });
  const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: readonly Check[] };
  expect(exitCode).toBe(ok ? 0 : 1);
  for (const check of checks) if (check.status !== "ok") expect(check.hint).toBeTruthy();
  return { ok, of: (name) => checks.find((check) => check.name === name) };
}

test("the doctor checks the machine and every part of the project", async () => {
  const { ok, of } = await examine(project.root);
  expect(ok).toBe(true);
  expect(of("Node")?.message).toContain(process.version);
  expect(of("SQLite")?.message).toContain("full-text search");
  expect(of("Git")?.status).toBe("ok");
  expect(of("commands")?.message).toMatch(/^Commands (are walled in|run without isolation)/);
  expect(of("index")?.message).toContain(".kit/index.db");
  expect(of("specs")?.message).toContain("Kiro 5");
  expect(of("guidelines")?.message).toContain("Cursor 2");
  expect(of("spec problems")).toMatchObject({
    status: "warning",
    hint: expect.stringContaining("kit specs validate"),
  });
});

test("the doctor prints one line per check, and the remedy below each problem", async () => {
  const { exitCode, stdout } = await runKit(["doctor"], { cwd: project.root });
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/^✓ Node +v\d/m);
  expect(stdout).toMatch(/^! spec problems +0 errors, 1 warning\n +→ 'kit specs validate' lists them\.$/m);
});

test("the doctor prints the model in use, its key and package, and where sessions are stored", async () => {
  const inspect = async (env: Readonly<Record<string, string>>) => {
    const { stdout } = await runKit(["doctor", "--json"], {
      cwd: project.root,
      env: { ...withoutKeys, ...env },
    });
    const { checks } = JSON.parse(stdout) as { checks: readonly Check[] };
    return (name: string) => checks.find((check) => check.name === name);
  };
  const plain = await inspect({});
  expect(plain("model")?.message).toMatch(/^offline\/guide: kit's own/);
  expect(plain("store")?.message).toMatch(/^SQLite, \.kit\/sessions\.db/);
  const checkNamed = await inspect({ ANTHROPIC_API_KEY: "sk-ant-canary-0123456789", KIT_STORE: "memory" });
  expect(checkNamed("model")).toEqual({
    name: "model",
    status: "ok",
    message: "anthropic/claude-sonnet-4-6: key ANTHROPIC_API_KEY, package @ai-sdk/anthropic",
  });
  expect(checkNamed("store")).toMatchObject({
    status: "warning",
    message: "memory: sessions end with the process",
  });
  const broken = await inspect({
    KIT_MODEL: "openai/gpt-5.1",
    KIT_STORE: "postgres://ann:geheim@127.0.0.1:1/kit",
  });
  expect(broken("model")).toMatchObject({ status: "error", hint: expect.stringContaining("OPENAI_API_KEY") });
  expect(broken("store")).toMatchObject({
    status: "error",
    message: expect.stringMatching(/^Postgres, 127\.0\.0\.1:1\/kit: /),
  });
  expect(JSON.stringify(broken("store"))).not.toContain("geheim");
});

test("an invalid configuration is one failed check, and the other checks still run", async () => {
  const broken = await createSampleProject();
  await broken.write("kit.toml", "[server]\nprot = 1\n");
  const { ok, of } = await examine(broken.root);
  expect(ok).toBe(false);
  expect(of("configuration")).toMatchObject({ status: "error", message: expect.stringContaining("prot") });
  await broken[Symbol.asyncDispose]();
});

test("agents, skills and roles are counted, and a file that cannot be used is named with its line", async () => {
  const agents = await createSampleProject();
  const { of: none } = await examine(agents.root);
  expect(none("agents")).toBeUndefined();
  await agents.write(".agents/skills/triage.md", "Sort new issues.\n");
  const { ok, of } = await examine(agents.root);
  expect(ok).toBe(true);
  expect(of("agents")).toMatchObject({ status: "ok", message: "1 skill" });
  await agents.write("src/agents/broken.ts", "export default {\n");
  const after = await examine(agents.root);
  expect(after.ok).toBe(false);
  expect(after.of("agents")).toMatchObject({
    status: "error",
    message: "1 skill; 1 problem",
    hint: expect.stringContaining("src/agents/broken.ts"),
  });
  await agents.write("src/agents/empty.ts", "export const nothing = 1;\n");
  const { stdout } = await runKit(["doctor"], { cwd: agents.root });
  expect(stdout).toMatch(
    /^✗ agents +1 skill; 2 problems\n +→ src\/agents\/broken\.ts: .*\n +src\/agents\/empty\.ts: .*$/m,
  );
  await agents[Symbol.asyncDispose]();
});

test("a departure from a format that still works is a warning, and so is an invalid spec", async () => {
  const agents = await createSampleProject();
  const skill = (name: string, extra = ""): string =>
    `---\nname: ${name}\ndescription: Sorts issues.\n${extra}---\n\nSort new issues.\n`;
  await agents.write(".agents/skills/triage/SKILL.md", skill("triage", "color: red\n"));
  await agents.write(".agents/skills/Other_Name/SKILL.md", skill("sort"));
  await agents.write(".claude/skills/triage/SKILL.md", `${skill("triage")}Otherwise.\n`);
  await agents.write(".cursor/rules.json", "{");
  const { ok, of } = await examine(agents.root);
  expect(of("agents")).toMatchObject({
    status: "warning",
    message: expect.stringMatching(/^2 skills; \d problems$/),
    hint: expect.stringContaining("kit uses .agents/skills/triage/SKILL.md"),
  });
  expect(of("spec problems")).toMatchObject({
    status: "warning",
    message: expect.stringMatching(/^[1-9]\d* error/),
  });
  expect(ok).toBe(true);
  await agents.write(".agents/skills/zero.md", "---\nname: zero\n---\n");
  const { ok: after, of: now } = await examine(agents.root);
  expect(after).toBe(false);
  expect(now("agents")).toMatchObject({
    status: "error",
    hint: expect.stringMatching(/^\.agents\/skills\/zero\.md: /),
  });
  await agents[Symbol.asyncDispose]();
});

test("entries of command lists that allow nothing are named, with a replacement", async () => {
  const listed = await createSampleProject();
  await listed.write("kit.toml", '[agent]\nallowed_commands = ["git", "npm", "git commit"]\n');
  const { ok, of } = await examine(listed.root);
  expect(ok).toBe(true);
  expect(of("command lists")).toMatchObject({
    status: "warning",
    message: "2 entries of command lists allow no command.",
  });
  expect(of("command lists")?.hint).toMatch(
    /^agent\.allowed_commands: "npm" runs nothing.*\nagent\.allowed_commands: "git commit" runs nothing without/,
  );
  await listed[Symbol.asyncDispose]();
});

test("a folder that cannot be written is reported, with the consequences", async () => {
  await using project = await createSampleProject();
  // A file in the place of the folder keeps everybody out, the superuser as well.
  await project.write(".kit", "");
  const { of } = await examine(project.root);
  expect(of("index")).toMatchObject({
    status: "warning",
    message: expect.stringMatching(
      /^not kept in \.kit: a file is where the folder should be; \d+ files read in \d+ ms$/,
    ),
    hint: expect.stringContaining("KIT_STORE=memory"),
  });
});

test("a folder without Git and without sources is no error", async () => {
  const bare = testFolder(onTestFinished);
  mkdirSync(join(bare, "src"));
  const { ok, of } = await examine(bare);
  expect(ok).toBe(true);
  for (const name of ["repository", "specs", "guidelines"]) expect(of(name)?.status).toBe("warning");
});

test("every MCP server of the configuration is started once, and reported if it does not work", async () => {
  await using served = await createSampleProject();
  const script = join(import.meta.dirname, "../../mcp/testing/serve-process.ts");
  const command = JSON.stringify(process.execPath);
  await served.write(
    "kit.toml",
    `[mcp.servers.tools]
command = ${command}
args = [${JSON.stringify(script)}]
[mcp.servers.few]
command = ${command}
args = [${JSON.stringify(script)}]
allow = ["echo", "ecko"]
[mcp.servers.broken]
command = ${command}
args = ["--eval", "console.error('no database'); process.exit(4)"]
`,
  );
  const { ok, of } = await examine(served.root);
  expect(ok).toBe(false);
  expect(of("MCP server tools")).toEqual({ name: "MCP server tools", status: "ok", message: "10 tools" });
  expect(of("MCP server few")).toMatchObject({
    status: "warning",
    message: "1 tool",
    hint: expect.stringContaining("ecko"),
  });
  expect(of("MCP server broken")).toMatchObject({
    status: "error",
    message: "It is not available. Its process ended with code 4.",
    hint: "Its last output: no database",
  });
});

test("the doctor names the specs that Git ignores, whether kit reads them or not", async () => {
  const spec = "# Spec\n\n## Requirements\n\n- **FR-001**: The shop MUST keep carts.\n";
  await using repository = await createTemporaryRepository({
    ".gitignore": "specs/\n*.spec.md\n.kiro/\n.tessl/\nnode_modules/\n",
    ".kiro/specs/cart/requirements.md":
      "# Requirements\n\n### Requirement 1: Keep\n\n1. THE SYSTEM SHALL keep.\n",
    "specs/001-cart/spec.md": spec,
    ".tessl/tiles/shop.md": "# Shop\n\nSells.\n",
    "docs/cart.spec.md": "# Cart\n\nKeeps.\n",
    "node_modules/x/specs/001-x/spec.md": spec,
  });
  await repository.init();
  const { of } = await examine(repository.root);
  expect(of("specs")?.message).toBe(
    "Kiro 1, not in Git: .kiro/specs/cart/requirements.md, not read, because Git ignores them: .tessl/tiles/shop.md, docs/cart.spec.md, specs/001-cart/spec.md",
  );
});

test("the doctor counts the guidelines of every tool, and names the files that are not in Git", async () => {
  await using repository = await createTemporaryRepository({
    ".github/copilot-instructions.md": "## One\n\ntext\n",
    "GEMINI.md": "## One\n\ntext\n",
    ".windsurf/rules/a.md": "text\n",
    ".clinerules/a.md": "text\n",
    ".rules": "text\n",
    "CLAUDE.local.md": "text\n",
    "openspec/specs/cart/spec.md": "# Cart\n\n## Requirements\n\n### Requirement: Keep\n\nIt SHALL keep.\n",
    ".gitignore": "*.local.md\n",
  });
  await repository.init();
  const { of } = await examine(repository.root);
  expect(of("guidelines")).toMatchObject({
    status: "ok",
    message:
      "Claude Code 1, GitHub Copilot 1, Gemini CLI 1, Windsurf 1, Cline 1, Zed 1, not in Git: CLAUDE.local.md",
  });
  expect(of("specs")?.message).toBe("OpenSpec 1");
  const { stdout } = await runKit(["guidelines", "list"], { cwd: repository.root, columns: 100 });
  expect(stdout.match(/not in Git/g)).toHaveLength(1);
});

test("the doctor names the tools that skills ask to use without a question, and none where no skill does", async () => {
  const skill = (name: string, more: string): string =>
    `---\nname: ${name}\ndescription: Does it.\n${more}---\n\nDo it.\n`;
  await using asking = await createTemporaryRepository({
    ".claude/skills/release/SKILL.md": skill("release", "allowed-tools: Bash(git push *) Read\n"),
    ".agents/skills/notes/SKILL.md": skill("notes", ""),
  });
  const { ok, of } = await examine(asking.root);
  expect(ok).toBe(true);
  expect(of("allowed-tools")).toMatchObject({
    status: "ok",
    message: ".claude/skills/release/SKILL.md asks for Read, Bash(git push *)",
    hint: expect.stringContaining("Confirm"),
  });
  const many = Array.from({ length: 20 }, (_, at) => `Bash(git log${at}:*)`).join(" ");
  await asking.write(".agents/skills/notes/SKILL.md", skill("notes", `allowed-tools: ${many} Bash(*)\n`));
  expect((await examine(asking.root)).of("allowed-tools")).toMatchObject({
    status: "warning",
    message: expect.stringMatching(/notes\/SKILL\.md asks for Bash\(\*\), .* and 10 more: read the file/),
  });
  expect((await examine(project.root)).of("allowed-tools")).toBeUndefined();
});
