import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { runKit } from "../testing/run-kit.ts";

const files = {
  "package.json": '{"type": "module"}',
  "src/agents/inside.ts": `import { createAgent } from "kit";
export default createAgent({});
`,
  "src/agents/team/reviewer.ts":
    'import { createAgent } from "kit";\nexport const triggers = { webhook: true };\nexport default createAgent({});\n',
  "src/workflows/report.ts": 'export const schedule = "0 9 * * 1-5";\nexport async function run() {}\n',
  "src/webhooks/chat.ts": `import { defineWebhook } from "kit/webhooks";
export default defineWebhook({ scheme: "github", secret: () => undefined, handle: () => undefined });
`,
};

test("kit routes lists what is served, from which file, and what only kit dev serves", async () => {
  await using folder = await createTemporaryRepository(files);
  const { exitCode, stdout, stderr } = await runKit(["routes"], { cwd: folder.root });
  expect(exitCode).toBe(0);
  expect(stderr).toContain("4 routes. 'kit start' serves 3 of them.");
  expect(stderr).toContain("export const triggers = { webhook: true }");
  expect(stdout.split("\n").map((line) => line.split("\t"))).toEqual([
    ["POST /agents/inside/{id}", "src/agents/inside.ts", "kit dev only"],
    ["POST /agents/team.reviewer/{id}", "src/agents/team/reviewer.ts", ""],
    ["POST /workflows/report", "src/workflows/report.ts", "0 9 * * 1-5 UTC"],
    ["POST /webhooks/chat", "src/webhooks/chat.ts", "no secret: refuses every delivery"],
    [""],
  ]);
});

test("kit routes --json prints the same for machines", async () => {
  await using folder = await createTemporaryRepository(files);
  const { stdout } = await runKit(["routes", "--json"], { cwd: folder.root });
  expect(JSON.parse(stdout)).toMatchObject({
    agents: [
      { name: "inside", path: "src/agents/inside.ts", triggers: { webhook: false }, dev_only: true },
      { name: "team.reviewer", triggers: { webhook: true } },
    ],
    workflows: [{ name: "report", path: "src/workflows/report.ts", schedules: [{ cron: "0 9 * * 1-5" }] }],
    webhooks: [{ name: "chat", path: "src/webhooks/chat.ts" }],
    problems: [],
  });
});

test("with server.expose = all no route is marked", async () => {
  await using folder = await createTemporaryRepository({
    ...files,
    "kit.toml": '[server]\nexpose = "all"\n',
  });
  const { stdout } = await runKit(["routes", "--json"], { cwd: folder.root });
  expect(stdout).not.toContain("dev_only");
});

test("an unusable file is named, the others are listed, and the command fails", async () => {
  await using folder = await createTemporaryRepository({ ...files, "src/webhooks/none.ts": "export {};\n" });
  const { exitCode, stdout, stderr } = await runKit(["routes"], { cwd: folder.root });
  expect(exitCode).toBe(1);
  expect(stderr).toContain("error: src/webhooks/none.ts: It has no webhook as its default export");
  expect(stdout).toContain("POST /webhooks/chat");
});

test("a project without routes is told how to add some", async () => {
  await using folder = await createTemporaryRepository({ "README.md": "" });
  const { exitCode, stdout, stderr } = await runKit(["routes"], { cwd: folder.root });
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: "" });
  expect(stderr).toContain("kit init");
});
