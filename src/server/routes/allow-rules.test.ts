import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { KitClient } from "../../client/index.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTestService } from "../../testing/test-service.ts";
import { type ServedService, serveService } from "../testing/serve-service.ts";

const agent = (profile: string): string =>
  `export const triggers = { webhook: true };\nexport default { kind: "kit.agent", describe: async () => (${profile}) };\n`;

const tool = (options = "") =>
  `{ name: "refund", description: "Pays back.", input: { type: "object", properties: { order: {} } }, execute: () => "Paid."${options} }`;

const toml =
  '# How we work\n[agent.approvals]\ntools = ["refund", "write"] # ask us\n\n# the server\n[server]\nport = 1\n';

let served: ServedService | undefined;
afterEach(async () => {
  await served?.close();
  served = undefined;
});

/** Calls the tool that the message names, with the arguments behind it. */
const model = createScriptedModel(({ prompt }) => {
  const last = prompt.at(-1);
  if (last?.role !== "user") return { text: "Done." };
  const text = last.content.map((part) => ("text" in part ? part.text : "")).join("");
  const [name = "", ...input] = text.trim().split(" ");
  return { toolCalls: [{ name, input: JSON.parse(input.join(" ")) }] };
});

async function serve(files: Record<string, string | null> = {}, options: object = {}) {
  const mine = {
    "kit.toml": toml,
    "src/agents/mender.ts": agent(`{ tools: [${tool()}], allowWrite: true }`),
    "src/agents/strict.ts": agent(`{ tools: [${tool()}], approvals: { tools: ["refund"] } }`),
    "src/agents/asking.ts": agent(`{ tools: [${tool(", needsApproval: true")}] }`),
    ...files,
  };
  served = await serveService({
    files: mine,
    ...options,
    openService: async ({ root }) => await createTestService({ root, model }),
  });
  return { served, client: new KitClient({ baseUrl: served.url }) };
}

/** Gives an agent a call to make, and its approval once that waits. */
async function ask(client: KitClient, name: string, message: string) {
  const id = `${name}-${Math.random()}`;
  await client.agents.dispatch(name, { id, input: message });
  await expect.poll(async () => (await client.agents.approvals(name, { id })).length).toBe(1);
  const [request] = await client.agents.approvals(name, { id });
  if (request === undefined) throw new Error("No call waits.");
  return { id, approval_id: request.approval_id, request };
}

const refund = 'refund {"order":7}';

test("a rule is shown, written without changing comments, and applies at once to live agents", async () => {
  const {
    served: { root, send },
    client,
  } = await serve();
  const { id, approval_id } = await ask(client, "mender", refund);
  const { choices, file, problem } = await client.agents.allowRules("mender", { id, approval_id });
  expect({ file, problem }).toEqual({ file: "kit.toml", problem: undefined });
  expect(choices).toEqual([
    {
      rule: { tool: "refund", agent: "mender", args: '{"order":7}' },
      summary: "refund with exactly these arguments, by the agent mender",
      toml: '[[agent.approvals.allow]]\ntool = "refund"\nagent = "mender"\nargs = "{\\"order\\":7}"',
    },
    expect.objectContaining({ rule: { tool: "refund", agent: "mender" } }),
  ]);
  expect(readFileSync(join(root, "kit.toml"), "utf8")).toBe(toml);
  const [first] = choices;
  if (first === undefined) throw new Error("None is offered.");
  const written = await client.agents.allow("mender", { id, approval_id, rule: first.rule });
  expect(written).toEqual({ rule: first.rule, file: "kit.toml", toml: first.toml, applies_to: "all_nodes" });
  expect(readFileSync(join(root, "kit.toml"), "utf8")).toBe(`${toml}\n${first.toml}\n`);
  // The call itself waits on, and the same rule is not written twice.
  expect(await client.agents.approvals("mender", { id })).toHaveLength(1);
  expect((await client.agents.allow("mender", { id, approval_id, rule: first.rule })).toml).toBe("");
  await client.agents.approve("mender", { id, approval_id, approved: true });
  await expect.poll(async () => (await client.agents.approvals("mender", { id })).length).toBe(0);
  // The same live instance, then another: neither waits for anybody. Other arguments do.
  for (const instance of [id, "fresh"]) {
    const { body } = await send(`/agents/mender/${instance}`, { body: { message: refund } });
    expect(body.result?.text).toBe("Done.");
  }
  await ask(client, "mender", 'refund {"order":8}');
});

test.each([
  ["strict", "agent's own definition"],
  ["asking", "tool itself"],
])("no rule is offered or accepted if the agent or its tool requires approval: %s", async (name, why) => {
  const {
    served: { root, send },
    client,
  } = await serve({
    "kit.toml": `${toml}\n[[agent.approvals.allow]]\ntool = "refund"\n`,
  });
  const { id, approval_id, request } = await ask(client, name, refund);
  expect(request).toMatchObject({ no_allow_rule: expect.stringContaining(why) });
  expect(await client.agents.allowRules(name, { id, approval_id })).toMatchObject({
    choices: [],
    problem: expect.stringContaining(why),
  });
  const path = `/agents/${name}/${id}/approvals/${approval_id}/rules`;
  expect(await send(path, { body: { rule: { tool: "refund" } } })).toMatchObject({ status: 400 });
  expect(readFileSync(join(root, "kit.toml"), "utf8")).toContain('tool = "refund"\n');
  // The rule that stands in the file waives it for other agents alone.
  const { body } = await send("/agents/mender/1", { body: { message: refund } });
  expect(body.result?.text).toBe("Done.");
});

test("a protected path needs approval whatever the rules allow", async () => {
  const {
    client,
    served: { send },
  } = await serve({
    "kit.toml": `${toml}\n[[agent.approvals.allow]]\ntool = "write"\n`,
  });
  const { body } = await send("/agents/mender/1", {
    body: { message: 'write {"path":"x.txt","content":""}' },
  });
  expect(body.result?.text).toBe("Done.");
  const { request } = await ask(client, "mender", 'write {"path":"package.json","content":"{}"}');
  expect(request.no_allow_rule).toContain("tool itself");
});

test("only an offered rule is accepted: none that is wider, for another tool, or for a call that does not wait", async () => {
  const {
    served: { root, send },
    client,
  } = await serve();
  const { id, approval_id } = await ask(client, "mender", refund);
  const path = `/agents/mender/${id}/approvals/${approval_id}/rules`;
  for (const rule of [
    { tool: "refund" },
    { tool: "write", agent: "mender" },
    { tool: "refund", agent: "mender", args: '{"order":8}' },
    { tool: "refund", agent: "mender", more: "x" },
    { agent: "mender" },
    "refund",
    { tool: 'refund"\n[server]\nauth = 1', agent: "mender" },
  ])
    expect(await send(path, { body: { rule } })).toMatchObject({ status: 400 });
  const other = `/agents/mender/${id}/approvals/approval_none/rules`;
  expect(await send(other, { body: { rule: { tool: "refund", agent: "mender" } } })).toMatchObject({
    status: 404,
  });
  expect(await send(other)).toMatchObject({ status: 404 });
  expect(readFileSync(join(root, "kit.toml"), "utf8")).toBe(toml);
});

test("a rule is refused without the permission, and by a server that only reads", async () => {
  const authorize = ({ action }: { action: string }) => action !== "agent.allow";
  const {
    served: { root, send },
    client,
  } = await serve({}, { authorize });
  const { id, approval_id } = await ask(client, "mender", refund);
  const { choices } = await client.agents.allowRules("mender", { id, approval_id });
  const sent = { body: { rule: choices[0]?.rule } };
  const path = `/agents/mender/${id}/approvals/${approval_id}/rules`;
  expect(await send(path, sent)).toMatchObject({ status: 403 });
  const page = { ...sent, headers: { "sec-fetch-site": "same-origin" } };
  expect(await send(path, page)).toMatchObject({ status: 403 });
  expect(readFileSync(join(root, "kit.toml"), "utf8")).toBe(toml);
});

test("a file to which the rule cannot be written stays unchanged, and the reply says so", async () => {
  const {
    served: { root, send },
    client,
  } = await serve();
  const { id, approval_id } = await ask(client, "mender", refund);
  const { choices } = await client.agents.allowRules("mender", { id, approval_id });
  const path = `/agents/mender/${id}/approvals/${approval_id}/rules`;
  const write = () => send(path, { body: { rule: choices[0]?.rule } });
  const file = join(root, "kit.toml");
  for (const text of ["agent = 1\n", "[agent.approvals]\nallow = 1\n"]) {
    writeFileSync(file, text);
    const { status, body } = await write();
    expect(status).toBe(503);
    expect(body.error.message).toContain("was not written");
    expect(readFileSync(file, "utf8")).toBe(text);
  }
  writeFileSync(file, toml);
  if (process.getuid?.() !== 0) {
    chmodSync(file, 0o400);
    expect((await write()).status).toBe(503);
    chmodSync(file, 0o600);
  }
});

test("no rule contains arguments with a secret, and control characters in a call's text are shown as codes", async () => {
  const { served: hidden, client } = await serve();
  const { request, id, approval_id } = await ask(
    client,
    "mender",
    `refund ${JSON.stringify({ order: 'x"\n[server]\u202e\u200b' })}`,
  );
  expect(request.allow_rules).toHaveLength(2);
  const { choices } = await client.agents.allowRules("mender", { id, approval_id });
  expect(choices[0]?.toml).toContain('"{\\"order\\":\\"x\\\\\\"\\\\n[server]\\U0000202e\\U0000200b\\"}"');
  await client.agents.allow("mender", { id, approval_id, rule: choices[0]?.rule ?? { tool: "" } });
  const { parse } = await import("smol-toml");
  const { server } = parse(readFileSync(join(hidden.root, "kit.toml"), "utf8"));
  expect(server).toEqual({ port: 1 });
});
