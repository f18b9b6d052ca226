import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { createServedProject, providerKey, withoutKeys } from "../src/cli/testing/agents-project.ts";
import { runKit } from "../src/cli/testing/run-kit.ts";

// An agent tries to reach the keys of a real server, and to make the server run its code.

const { project, server } = await createServedProject();
const running = new Set<ChildProcess>();
afterEach(async () => {
  for (const child of running) {
    const ended = new Promise((resolve) => child.once("close", resolve));
    child.kill("SIGTERM");
    await ended;
  }
  running.clear();
});

project.write("kit.toml", `${project.read("kit.toml")}\n[sandbox]\nisolation = "off"\n`);
project.write(
  "src/agents/worker.ts",
  `import { createAgent } from "kit";
import { local } from "kit/sandboxes/local";
import { greeting } from "../lib/greeting.ts";
export const triggers = { webhook: true };
export default createAgent((ctx) => ({
  instructions: greeting,
  model: "local/m",
  sandbox: local(),
  allowWrite: true,
  allowShell: true,
  allowCompoundCommands: true,
  ...(ctx.id === "asked" ? { approvals: { tools: [] } } : {}),
}));
`,
);
project.write("src/lib/greeting.ts", 'export const greeting = "Be kind.";\n');

interface Served {
  readonly url: string;
  readonly id: number;
  output(): string;
  hasOutput(text: string): Promise<void>;
}

/** Starts kit as users do: through its launcher. */
async function serve(command: string, env: Readonly<Record<string, string>>): Promise<Served> {
  const launcher = fileURLToPath(new URL("../bin/kit.mjs", import.meta.url));
  const child = spawn(process.execPath, [launcher, command, "--port", "0"], {
    cwd: project.root,
    env: { PATH: process.env.PATH, HOME: project.root, ...withoutKeys, ...env },
  });
  running.add(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  const find = async (pattern: RegExp): Promise<string> => {
    await expect.poll(() => output, { timeout: 30_000 }).toMatch(pattern);
    return pattern.exec(output)?.[0] ?? "";
  };
  const url = await find(/http:\/\/[\w.:[\]-]+:\d+(?=\S*\n)/);
  const hasOutput = async (text: string): Promise<void> => {
    await expect.poll(() => output, { timeout: 30_000 }).toContain(text);
  };
  return { url, id: child.pid ?? 0, output: () => output, hasOutput };
}

async function prompt(
  { url }: Served,
  id: string,
  calls: readonly { name: string; input: object }[],
): Promise<string> {
  server.script([
    ...calls.map(({ name, input }, at) => ({
      toolCall: { id: `c${at}`, name, args: JSON.stringify(input) },
    })),
    { text: "Done." },
  ]);
  const reply = await fetch(`${url}/agents/worker/${id}`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "text/event-stream" },
    body: JSON.stringify({ message: "Go." }),
  });
  return await reply.text();
}

test.skipIf(process.platform !== "linux")(
  "no key of the server reaches a model, whatever it reads, even without isolation",
  async () => {
    const canaries = {
      PAYMENT_API_KEY: "canary-one-5d41402abc",
      SMTP_PASS: "canary-two-7d793037a0",
      DATABASE_URL: "postgres://kit:canary-three-76d80@db.example/kit",
    };
    project.write(".env", "INNER=canary-four-86f7e437fa\nNAME=shop\n");
    const served = await serve("start", canaries);
    const commands = [
      "cat /proc/self/environ | tr '\\0' '\\n'",
      "cat /proc/$PPID/environ | tr '\\0' '\\n'",
      `cat /proc/${served.id}/environ /proc/${served.id}/cmdline; ls /proc/${served.id}/environ`,
      `cat /proc/${served.id}/task/*/environ`,
      "env; printenv; set",
      "ps eww -A || true",
      "cat .env; base64 .env; od -An -tx1 .env; grep -r canary- .",
    ];
    const printed = await prompt(served, "1", [
      ...commands.map((command) => ({ name: "bash", input: { command } })),
      { name: "read", input: { path: ".env" } },
      { name: "grep", input: { pattern: "canary" } },
      { name: "grep", input: { pattern: "canary", path: ".env" } },
    ]);
    const history = await (await fetch(`${served.url}/agents/worker/1/history`)).text();
    const storedTexts = readdirSync(join(project.root, ".kit"), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"));
    const everywhere = [
      printed,
      history,
      served.output(),
      JSON.stringify(server.requests),
      ...storedTexts,
    ].join("\n");
    expect(printed).toContain(`/proc/${served.id}/environ`);
    expect(printed).toContain("[secret]");
    for (const canary of ["canary-one", "canary-two", "canary-three", "canary-four", providerKey]) {
      for (const form of [
        canary,
        Buffer.from(canary).toString("hex"),
        Buffer.from(canary).toString("base64").slice(0, 12),
      ])
        expect([canary, everywhere.includes(form)]).toEqual([canary, false]);
    }
    expect(JSON.stringify(server.requests.at(-1))).toContain(
      ".env holds secrets, and is not for models to read",
    );
    // The process itself shows no key, masked or not.
    expect(readFileSync(`/proc/${served.id}/environ`, "latin1")).not.toContain("canary");
  },
);

test("kit dev prints what it read from .env, and runs no code that an agent wrote before a person accepts it", async () => {
  project.write(".env", "FROM_FILE=1\nHOME=/nowhere\nOTHER=2\n");
  const served = await serve("dev", {});
  await served.hasOutput("Read 2 variables from .env; 1 was set already.");
  const evil = 'export const greeting = ["evil", process.env.FROM_FILE].join(" ");\n';
  const first = await prompt(served, "1", [
    { name: "write", input: { path: "src/lib/greeting.ts", content: evil } },
    { name: "bash", input: { command: `printf '%s' '${evil.trim()}' > src/lib/greeting.ts` } },
  ]);
  expect(first).toContain("src/lib/greeting.ts is protected");
  await served.hasOutput("src/lib/greeting.ts was written by the agent");
  expect(project.read("src/lib/greeting.ts")).toContain("evil");
  await prompt(served, "2", []);
  expect(JSON.stringify(server.requests.at(-1))).toContain("Be kind.");
  const kit = (...args: readonly string[]) => runKit(args, { cwd: project.root, env: withoutKeys });
  expect((await kit("approvals", "list")).stdout).toMatch(/src\/lib\/greeting\.ts\s+worker\/1 \(bash\)/);
  expect(await kit("approvals", "accept", "src/lib/greting.ts")).toMatchObject({ exitCode: 2 });
  expect(await kit("approvals", "accept", "src/lib/greeting.ts")).toMatchObject({ exitCode: 0 });
  const reloads = served.output().split("sources changed").length;
  await expect.poll(() => served.output().split("sources changed").length).toBeGreaterThan(reloads - 1);
  await expect
    .poll(async () => {
      await prompt(served, `3-${Math.random()}`, []);
      return JSON.stringify(server.requests.at(-1));
    })
    .toContain("evil 1");
  expect((await kit("approvals", "list")).stderr).toContain("No call waits for approval.");
});
