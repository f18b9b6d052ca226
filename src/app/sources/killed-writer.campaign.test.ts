import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { isCampaign } from "../../testing/campaign.suite.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { inNode, killedInNode } from "./node-process.suite.ts";

const agentAnswering = (text: string): string =>
  `import { createAgent } from "kit";\nexport default createAgent({ instructions: ${JSON.stringify(text)} });\n`;
const evil = JSON.stringify(agentAnswering("evil"));

/** Sets up a model that makes one call, of a tool or a command, which does not end. */
const calling = (tool: string, input: object): string => `
const kit = await import(${JSON.stringify(new URL("../../index.ts", import.meta.url).href)});
const { local } = await import(${JSON.stringify(new URL("../../sandboxes/local/index.ts", import.meta.url).href)});
const deed = kit.defineTool({ name: "deed", description: "x", input: { type: "object" }, execute: () => new Promise(() => {
  write("src/agents/first.ts", ${evil});
  setInterval(() => write("src/agents/last.ts", ${evil}), 5);
  setTimeout(() => say("ready"), 700);
}) });
const calls = [{ name: ${JSON.stringify(tool)}, input: ${JSON.stringify(input)} }];
const app = await open(({ prompt }) => prompt.at(-1).role === "tool" ? { text: "ok" } : { toolCalls: calls.splice(0) });
for (const { name } of app.agents()) await app.instance(name, "loaded").catch(() => undefined);
const agent = await app.init(kit.createAgent({ tools: [deed], sandbox: local({ root, isolation: "off" }), allowWrite: true, allowShell: true, allowCompoundCommands: true }), { name: "worker" });
agent.session().prompt("go").catch(() => undefined);
`;

const findings = `
const app = await open();
const found = {};
for (const { name } of app.agents()) found[name] = await app.instance(name, "1").then((agent) => agent.session().prompt("x")).then(() => "loaded", ({ message, hint }) => /was written by the agent "worker"/.test(message + hint) ? "refused" : message);
for (const { path, message } of app.problems()) found[/(\\w+)\\.ts$/.exec(path)?.[1] ?? path] ??= /was written by the agent "worker"/.test(message) ? "refused" : message;
await app.close();
say(found);`;

const files = {
  "package.json": '{ "type": "module" }',
  ...Object.fromEntries(
    ["first", "last", "kept", "deployed"].map((name) => [`src/agents/${name}.ts`, agentAnswering("good")]),
  ),
};

const day = 86_400_000;
const clocks = [
  ["right", 0],
  ["thirty days ahead", 30 * day],
  ["ten minutes behind", -600_000],
  ["a day behind", -day],
] as const;
test.each(isCampaign ? clocks : clocks.slice(0, 2))(
  "after a kill with a clock that was %s, what the agent wrote is refused, also in the last moment, and what a person deploys is loaded",
  async (_, difference) => {
    await using folder = await createTemporaryRepository(files);
    const setClock = `const now = Date.now; Date.now = () => now() + ${difference};`;
    await killedInNode(folder.root, `${setClock}\n${calling("deed", {})}`);
    const kit = () => readdirSync(join(folder.root, ".kit"));
    await expect.poll(kit).toContainEqual(expect.stringMatching(/^agent-writes\.\d+\.end$/));
    await delay(50);
    writeFileSync(join(folder.root, "src/agents/deployed.ts"), agentAnswering("better"));
    const expected = { first: "refused", last: "refused", kept: "loaded", deployed: "loaded" };
    // The second start knows what the first one found.
    for (const _start of [1, 2]) expect(await inNode(folder.root, findings)).toMatchObject(expected);
    expect(kit().filter((name) => /^agent-writes\.\d+\./.test(name))).toEqual([]);
  },
);

test("a file with the content that was loaded before is loaded, though it was touched while the agent worked", async () => {
  await using folder = await createTemporaryRepository(files);
  const touching = `${calling("deed", {})}
const { renameSync } = await import("node:fs");
// By a rename: a kill in the middle of a write would leave other content.
setInterval(() => {
  write("kept.tmp", ${JSON.stringify(agentAnswering("good"))});
  renameSync(join(root, "kept.tmp"), join(root, "src/agents/kept.ts"));
}, 5);`;
  await killedInNode(folder.root, touching);
  expect(await inNode(folder.root, findings)).toMatchObject({ first: "refused", kept: "loaded" });
});

test.skipIf(process.platform !== "linux")(
  "a command that outlives the kill is ended by the next start, and what it wrote until then is refused",
  async () => {
    await using folder = await createTemporaryRepository({ ...files, "evil.txt": agentAnswering("evil") });
    const command = "while true; do cp evil.txt src/agents/last.ts; echo x >> beat.txt; sleep 0.05; done";
    const waiting = `${calling("bash", { command })}
const { existsSync } = await import("node:fs");
setInterval(() => existsSync(join(root, "beat.txt")) && say("ready"), 20);`;
    await killedInNode(folder.root, waiting);
    await delay(1_600);
    const beats = (): number => readFileSync(join(folder.root, "beat.txt"), "utf8").length;
    const before = beats();
    await delay(200);
    expect(beats()).toBeGreaterThan(before);
    expect(await inNode(folder.root, findings)).toMatchObject({ last: "refused", kept: "loaded" });
    const after = beats();
    await delay(200);
    expect(beats()).toBe(after);
    expect(
      readdirSync(join(folder.root, ".kit")).filter((name) => /^agent-writes\.\d+\./.test(name)),
    ).toEqual([]);
  },
);
