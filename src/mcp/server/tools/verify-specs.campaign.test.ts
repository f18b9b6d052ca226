import { randomUUID } from "node:crypto";
import { type CallToolResult, Client, type Progress } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { changedCart } from "../../../app/verify/testing/changed-cart.ts";
import { runsNow } from "../../../app/verify/testing/runs-now.ts";
import { withoutIsolation } from "../../../app/verify/testing/without-isolation.ts";
import { kitCommandLine } from "../../../cli/testing/run-kit.ts";
import { wallTest } from "../../../sandboxes/host/wall/walled.suite.ts";
import { isCampaign } from "../../../testing/campaign.suite.ts";
import type { TemporaryRepository } from "../../../testing/temporary-repository.ts";

let cart: TemporaryRepository;
beforeAll(async () => {
  cart = await changedCart();
});
afterAll(() => cart[Symbol.asyncDispose]());

async function connect(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Client> {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "legacy" } });
  const [command = "", ...rest] = kitCommandLine(["mcp", ...args]);
  const { HOME = "", PATH = "" } = process.env;
  await client.connect(
    new StdioClientTransport({
      command,
      args: rest,
      cwd: cart.root,
      env: { HOME, PATH, ...env },
      stderr: "pipe",
    }),
  );
  onTestFinished(() => client.close());
  return client;
}

function textOf({ content }: CallToolResult): string {
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

test("the server runs no tests unless its command line says so", async () => {
  const client = await connect([]);
  expect((await client.listTools()).tools.map(({ name }) => name)).not.toContain("verify_specs");
  expect(client.getInstructions()).not.toContain("verify_specs");
});

wallTest("verify_specs judges the work tree, says how far it is, and names what is not there", async () => {
  const client = await connect(["--verify"]);
  const { tools } = await client.listTools();
  expect(tools.find(({ name }) => name === "verify_specs")).toMatchObject({
    inputSchema: { additionalProperties: false },
    outputSchema: { properties: { end: { enum: ["closed", "refused", "ask", "broken"] } } },
    annotations: { readOnlyHint: false, destructiveHint: false },
  });
  const steps: Progress[] = [];
  const result = await client.callTool(
    { name: "verify_specs", arguments: { feature: "cart", task: "1" } },
    { onprogress: (progress) => steps.push(progress) },
  );
  expect(result.structuredContent).toMatchObject({ end: "closed", isolated: true });
  expect(textOf(result)).toBe("closed: the tests show that it is done.\nCriteria: cart#1.1");
  expect(steps.map(({ progress }) => progress)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(steps[0]).toMatchObject({ total: 7, message: "Running tests: before the change" });
  const unknown = await client.callTool({ name: "verify_specs", arguments: { feature: "carts" } });
  expect(unknown.isError).toBe(true);
  expect(textOf(unknown)).toBe(
    'No feature "carts" has acceptance criteria. kit specs coverage lists the features.',
  );
});

test("a system without isolation gets a sentence instead of a verdict", async () => {
  const client = await connect(["--verify"], withoutIsolation);
  const result = await client.callTool({ name: "verify_specs", arguments: {} });
  expect(result.isError).toBe(true);
  expect(textOf(result)).toContain("kit cannot isolate commands on freebsd.");
});

wallTest("a call that its client cancels, or a client that disconnects, ends the tests", async () => {
  const name = `endless-${randomUUID()}.test.mjs`;
  await cart.write(
    name,
    'import { test } from "node:test";\ntest("never ends", () => new Promise(() => setInterval(() => {}, 1000)));\n',
  );
  for (const how of isCampaign ? ["cancels", "disconnects"] : ["disconnects"]) {
    const client = await connect(["--verify"]);
    const stop = new AbortController();
    const call = client
      .callTool({ name: "verify_specs", arguments: {} }, { signal: stop.signal })
      .catch((error: unknown) => error);
    await expect.poll(() => runsNow(name), { timeout: 30_000 }).toBe(true);
    if (how === "cancels") stop.abort();
    else await client.close();
    expect(await call).toBeInstanceOf(Error);
    await expect.poll(() => runsNow(name), { timeout: 10_000 }).toBe(false);
  }
});
