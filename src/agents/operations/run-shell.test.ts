import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import { textOf } from "../../protocol/read-records.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import type { Agent } from "../harness.ts";
import { openDoomed } from "../session/crash.suite.ts";

const folder = testFolder(afterAll);

function open(store: ReturnType<typeof openDoomed>["store"]): Agent {
  const allowedCommands = ["git", { command: "node", unsafe: true }];
  const profile = { allowShell: true, allowWrite: true, allowedCommands, sandbox: local({ root: folder }) };
  return createTestAgent(createScriptedModel([]), profile, { store });
}

// Appends: 1 the start of the command, 2 its result.
test.each([
  ["before it begins", { at: 1, when: "before" }, undefined],
  ["when it is about to begin", { at: 1, when: "after" }, "conflict"],
  ["before its result is kept", { at: 2, when: "before" }, "conflict"],
  ["after its result is kept", { at: 2, when: "after" }, undefined],
] as const)("a command whose process crashes %s runs at most once", async (name, doom, code) => {
  const file = join(folder, `${name}.db`);
  const options = { operationId: "op_1" };
  const doomed = openDoomed(file, doom);
  await Promise.race([doomed.end, open(doomed.store).session().shell("git --version", options)]);
  const next = openDoomed(file, { at: 0, when: "after" });
  const session = open(next.store).session();
  const again = session.shell("git --version", options);
  if (code === undefined)
    expect(await again).toMatchObject({ exit_code: 0, stdout: expect.stringContaining("git version") });
  else {
    await expect(again).rejects.toMatchObject({ code });
    await expect(session.shell("git --version", options)).rejects.toMatchObject({ code });
  }
  // The history mentions the command once, whether its outcome is known or not.
  expect(await session.history()).toHaveLength(1);
  await next.store.close();
});

test("a refused command can be repeated with the same id", async () => {
  const place = openDoomed(join(folder, "refused.db"), { at: 0, when: "after" });
  const refused = createTestAgent(
    createScriptedModel([]),
    { sandbox: local({ root: folder }) },
    { store: place.store },
  );
  const options = { operationId: "op_1" };
  await expect(refused.session().shell("git --version", options)).rejects.toMatchObject({
    code: "forbidden",
  });
  expect(await open(place.store).session().shell("git --version", options)).toMatchObject({ exit_code: 0 });
  await place.store.close();
});

test("the caller gets the captured part of a long output, and the history a part that a model can read", async () => {
  const place = openDoomed(join(folder, "long.db"), { at: 0, when: "after" });
  const session = open(place.store).session();
  const line = `console.log("a".repeat(99_999)); console.error("the end")`;
  const { stdout } = await session.shell(`node -e '${line}'`);
  expect(stdout).toHaveLength(100_000);
  const [message] = await session.history();
  const text = message === undefined ? "" : textOf(message);
  expect(text.length).toBeLessThan(51_000);
  expect(text).toMatch(/characters cut …\].*the end\n$/s);
  await place.store.close();
});

test("aborting a session ends its command, and the next command runs", async () => {
  const place = openDoomed(join(folder, "aborted.db"), { at: 0, when: "after" });
  const agent = open(place.store);
  const session = agent.session();
  const events: KitEvent[] = [];
  agent.onEvent((event) => events.push(event));
  const waits = `require("fs").writeFileSync("begun", ""); setInterval(() => {}, 60_000)`;
  const running = session.shell(`node -e '${waits}'`);
  const ended = expect(running).rejects.toMatchObject({ code: "aborted" });
  await expect.poll(() => existsSync(join(folder, "begun"))).toBe(true);
  expect(await session.abort()).toBe(true);
  await ended;
  expect(events.map(({ type }) => type)).toEqual([
    "operation_start",
    "command_start",
    "abort_requested",
    "command_end",
    "aborted",
    "operation",
    "idle",
  ]);
  const [message] = await session.history();
  expect(message === undefined ? "" : textOf(message)).toContain("(exit code none)");
  expect(await session.shell("git --version")).toMatchObject({ exit_code: 0 });
  await place.store.close();
});
