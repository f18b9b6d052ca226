import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import type { Agents } from "../service/app.ts";
import { openAgents } from "../service/open-service.ts";

const server = postgresForTests();

async function createRepository(config: string): Promise<string> {
  const folder = await createTemporaryRepository(
    config.startsWith("export") ? { "kit.config.ts": config } : { "kit.toml": config },
  );
  onTestFinished(() => folder[Symbol.asyncDispose]());
  return folder.root;
}

async function open(root: string): Promise<Agents> {
  const model = createScriptedModel((call) => ({ text: `Messages: ${call.prompt.length}` }));
  return openAgents({ root, models: { "scripted/test": model } });
}

async function promptIn(app: Agents): Promise<readonly string[]> {
  const agent = await app.instance("default", "1");
  const { text } = await agent.session().prompt("Hello.");
  return [text, ...(await agent.sessions.list()).map((info) => `${info.session} at ${info.position}`)];
}

const agentTable = '[agent]\nmodel = "scripted/test"\n';

test("sessions are stored in the configured database, and continue in the next process", async () => {
  const root = await createRepository(`store = "${server.url}"\n${agentTable}`);
  const first = await open(root);
  expect((await promptIn(first))[1]).toBe("default at 2");
  await first.close();
  const second = await open(root);
  expect(await promptIn(second)).toEqual(["Messages: 4", "default at 4"]);
  await second.close();
  expect(existsSync(join(root, ".kit/sessions.db"))).toBe(false);
});

test("SQLite is the default, and memory leaves nothing behind", async () => {
  for (const [config, left] of [
    ["", true],
    ['store = "sqlite"\n', true],
    ['store = "memory"\n', false],
  ] as const) {
    const root = await createRepository(config + agentTable);
    const app = await open(root);
    await promptIn(app);
    await app.close();
    expect(existsSync(join(root, ".kit/sessions.db"))).toBe(left);
  }
});

test("a store of the project's own is used unchanged", async () => {
  const root = await createRepository(`export default {
    agent: { model: "scripted/test" },
    store: {
      log: [],
      append({ entries }) { this.log.push(...entries); globalThis.kitTestLog = this.log; },
      read() { return []; }, info() {}, list() { return []; }, delete() {}, close() {},
    },
  };`);
  const app = await open(root);
  await promptIn(app);
  await app.close();
  const { kitTestLog } = globalThis as { kitTestLog?: readonly SessionEntry[] };
  expect(kitTestLog?.map((entry) => entry.type)).toEqual(["message", "message"]);
});
