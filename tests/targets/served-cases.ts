import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { KitClient } from "../../src/client/index.ts";
import { apiKey, webhookSecret } from "./target-project.ts";

/** A running output, which a case can kill and start again. */
export interface ServedOutput {
  readonly url: string;
  /** Kills the server and starts it again on its files; the address can change. */
  restart(): Promise<void>;
}

export interface ServedCase {
  readonly name: string;
  run(output: ServedOutput): Promise<void>;
}

const clientOf = ({ url }: ServedOutput): KitClient => new KitClient({ baseUrl: url, apiKey });

async function untilSettled<Value>(
  ask: () => Promise<Value>,
  isSettled: (value: Value) => boolean,
): Promise<Value> {
  const end = Date.now() + 45_000;
  for (;;) {
    const value = await ask().catch(() => undefined);
    if (value !== undefined && isSettled(value)) return value;
    assert.ok(Date.now() < end, `not settled: ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** The cases that every output of the target project passes; they only send requests. */
export const servedCases: readonly ServedCase[] = [
  {
    name: "/health answers without a key, everything else wants one",
    async run({ url }) {
      const health = await fetch(`${url}/health`);
      assert.equal(health.status, 200);
      assert.equal(((await health.json()) as { readonly ok: unknown }).ok, true);
      assert.equal((await fetch(`${url}/agents`)).status, 401);
      assert.equal((await fetch(`${url}/api/specs`)).status, 401);
      const wrong = { Authorization: "Bearer another" };
      assert.equal((await fetch(`${url}/agents`, { headers: wrong })).status, 401);
    },
  },
  {
    name: "agents and workflows are listed, and a prompt is answered under the guidelines",
    async run(output) {
      const client = clientOf(output);
      const agents = await client.agents.list();
      assert.deepEqual(
        agents.map(({ name }) => name),
        ["reviewer"],
      );
      const { text, metadata } = await client.agents.invoke("reviewer", {
        id: "pr-1",
        message: "Which rules apply to src/a.ts?",
      });
      assert.match(text, /whole cents/);
      assert.equal(typeof metadata.turns, "number");
    },
  },
  {
    name: "a prompt is streamed, and an instance's events are read again from where a reader left",
    async run(output) {
      const client = clientOf(output);
      const stream = client.agents.stream("reviewer", {
        id: "pr-2",
        message: "Which rules apply to src/a.ts?",
      });
      const types = new Set<string>();
      for await (const event of stream) types.add(event.type);
      assert.ok(types.has("operation"), [...types].join());
      assert.match((await stream.result()).text, /whole cents/);
      const read = async (headers: Record<string, string>): Promise<readonly number[]> => {
        const controller = new AbortController();
        const response = await fetch(`${output.url}/agents/reviewer/pr-2/events`, {
          headers: { Authorization: `Bearer ${apiKey}`, Accept: "text/event-stream", ...headers },
          signal: controller.signal,
        });
        const ids: number[] = [];
        let text = "";
        for await (const chunk of response.body ?? []) {
          text += Buffer.from(chunk).toString("utf8");
          if (text.includes("event: operation\n") && text.endsWith("\n\n")) break;
        }
        controller.abort();
        for (const [, id] of text.matchAll(/^id: (\d+)$/gm)) ids.push(Number(id));
        return ids;
      };
      const all = await read({});
      assert.ok(all.length > 2);
      const [first = 0, second = 0] = all;
      const rest = await read({ "Last-Event-ID": String(first) });
      assert.equal(rest[0], second);
    },
  },
  {
    name: "a workflow runs, with its payload checked, a step, and an agent",
    async run(output) {
      const client = clientOf(output);
      const { result } = await client.workflows.invoke("count", { text: "one two three", ask: true });
      const { words, answer } = result as { readonly words: number; readonly answer: string };
      assert.equal(words, 3);
      assert.match(answer, /whole cents/);
      await assert.rejects(client.workflows.invoke("count", { text: 3 }), { code: "invalid_request" });
    },
  },
  {
    name: "accepted work outlives a kill: an input that waits, and a run that sleeps",
    async run(output) {
      const before = clientOf(output);
      const { run_id } = await before.workflows.start("count", { text: "four five", wait_ms: 1_500 });
      const { dispatch_id } = await before.agents.dispatch("reviewer", {
        id: "pr-3",
        input: "Which rules apply to src/a.ts?",
      });
      await output.restart();
      const client = clientOf(output);
      const run = await untilSettled(
        () => client.runs.get(run_id),
        ({ status }) => status === "completed",
      );
      assert.deepEqual(run.result, { words: 2 });
      const done = await untilSettled(
        () => client.dispatches.get(dispatch_id),
        ({ status }) => status === "completed",
      );
      assert.equal(done.status, "completed");
    },
  },
  {
    name: "guidelines and specs are those of the repository at the time of the build",
    async run(output) {
      const client = clientOf(output);
      const { guidelines } = await client.guidelines.list({});
      assert.deepEqual([...new Set(guidelines.map(({ source_file }) => source_file))], ["AGENTS.md"]);
      const { specs } = await client.specs.list({});
      assert.ok(specs.some(({ path }) => path === ".kiro/specs/returns/requirements.md"));
      const explained = await fetch(`${output.url}/api/guidelines?file=src/a.ts`, {
        headers: { Authorization: `Bearer ${apiKey}` },
      });
      assert.equal(explained.status, 200);
    },
  },
  {
    name: "a signed delivery reaches the agent, one that is not is refused, and an error of the project's code keeps its kind",
    async run(output) {
      const body = JSON.stringify({ thread: "t-1", text: "Which rules apply to src/a.ts?" });
      const accepted = await deliver(output, "msg_1", body);
      assert.equal(accepted.status, 202, await accepted.clone().text());
      const refused = await fetch(`${output.url}/webhooks/chat`, { method: "POST", body });
      assert.equal(refused.status, 401);
      const wrong = await deliver(output, "msg_2", "{}");
      assert.equal(wrong.status, 400);
      assert.match(await wrong.text(), /not a message of the chat/);
      const client = clientOf(output);
      await untilSettled(
        () => client.dispatches.list({ agent: "reviewer", instance_id: "t-1" }),
        ({ dispatches }) => dispatches[0]?.status === "completed",
      );
    },
  },
  {
    name: "the console is served at /, with its scripts",
    async run({ url }) {
      const page = await fetch(url, { headers: { Accept: "text/html" } });
      assert.equal(page.status, 200);
      const [, script] = /<script[^>]+src="([^"]+)"/.exec(await page.text()) ?? [];
      assert.ok(script !== undefined);
      const code = await fetch(new URL(script, `${url}/console/`));
      assert.equal(code.status, 200);
      assert.match(code.headers.get("content-type") ?? "", /javascript/);
    },
  },
];

async function deliver({ url }: ServedOutput, id: string, body: string): Promise<Response> {
  const seconds = String(Math.floor(Date.now() / 1000));
  const key = Buffer.from(webhookSecret.slice("whsec_".length), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64");
  return await fetch(`${url}/webhooks/chat`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": seconds,
      "webhook-signature": `v1,${signature}`,
    },
    body,
  });
}
