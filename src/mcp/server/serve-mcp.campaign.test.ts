import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type CallToolResult, Client, ResourceNotFoundError } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { shopFiles } from "../../server/testing/shop-files.ts";
import { type TemporaryProject, temporaryProject } from "../../server/testing/temporary-project.ts";
import { campaignTest } from "../../testing/campaign.suite.ts";
import { maxAnswerLength } from "./bounds.ts";

const script = join(import.meta.dirname, "testing/serve-process.ts");
const manyRules = Array.from({ length: 60 }, (_, n) => `## Rule ${n}\n\n${`Do ${n} well. `.repeat(100)}\n`);
const files = {
  ...shopFiles,
  "packages/big/AGENTS.md": `# Big\n\n${manyRules.join("\n")}`,
  "packages/long/AGENTS.md": `# Long\n\n## Endless\n\n${"An endless rule. ".repeat(90_000)}\n`,
};

let shop: TemporaryProject;
let client: Client;

async function connect(mode: "legacy" | "auto", root = shop.root): Promise<Client> {
  const connected = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [script, root],
    // The client passes on only the required variables.
    env: { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? "" },
    stderr: "pipe",
  });
  await connected.connect(transport);
  return connected;
}

async function call(name: string, input: Record<string, unknown>): Promise<CallToolResult> {
  return await client.callTool({ name, arguments: input });
}

function textOf(result: CallToolResult): string {
  return result.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** The tool's result without types, as a model sees it. */
function structureOf(result: CallToolResult) {
  return JSON.parse(JSON.stringify(result.structuredContent));
}

beforeAll(async () => {
  shop = await temporaryProject(files);
  client = await connect("auto");
});
afterAll(async () => {
  await client.close();
  await shop.remove();
});

test("clients of both protocol generations see the same read-only tools", async () => {
  const legacy = await connect("legacy");
  try {
    const { tools } = await client.listTools();
    expect((await legacy.listTools()).tools.map(({ name }) => name)).toEqual(tools.map(({ name }) => name));
    expect(tools.map(({ name }) => name)).toContain("guidelines_for");
    for (const tool of tools) {
      expect(tool).toMatchObject({
        description: expect.stringMatching(/\.$/),
        inputSchema: { type: "object", additionalProperties: false },
        outputSchema: { type: "object" },
        annotations: { readOnlyHint: true },
      });
    }
    expect(client.getInstructions()).toContain("guidelines_for");
    const result = await legacy.callTool({ name: "spec_search", arguments: { q: "refund" } });
    expect(result.structuredContent).toMatchObject({ total: expect.any(Number) });
  } finally {
    await legacy.close();
  }
});

describe("guidelines", () => {
  test("for a file are returned with text, position and reason", async () => {
    const result = await call("guidelines_for", { file: "src/api/orders.ts" });
    const { total, applied } = structureOf(result);
    expect(total).toBe(applied.length);
    const api = applied.find((one: { source_file: string }) => one.source_file === ".cursor/rules/api.mdc");
    expect(api).toMatchObject({
      reason: "pattern",
      detail: "src/api/**",
      content: expect.stringContaining("Validate"),
    });
    expect(textOf(result)).toContain(".cursor/rules/api.mdc:");
    const absolute = await call("guidelines_for", { file: join(shop.root, "src/api/orders.ts") });
    expect(absolute.structuredContent).toEqual(result.structuredContent);
    const claude = structureOf(await call("guidelines_for", { file: "src/api/orders.ts", tool: "claude" }));
    expect(claude.tool).toBe("fw_c");
    expect(claude.applied.some((one: { source_file: string }) => one.source_file.includes(".cursor"))).toBe(
      false,
    );
  });

  test("can be searched, read and converted", async () => {
    const [found] = structureOf(await call("guidelines_search", { q: "cents" })).guidelines;
    expect(found).toMatchObject({ title: "Money", source_file: "AGENTS.md" });
    const got = await call("guideline_get", { id: found.id });
    expect(structureOf(got).guideline).toMatchObject({ id: found.id, tags: expect.any(Array) });
    expect(textOf(got)).toContain("Amounts are integers");
    const converted = structureOf(await call("guideline_convert", { id: found.id, format: "kiro" }));
    expect(converted).toMatchObject({ filename: "money.md", frontmatter: { inclusion: "always" } });
  });

  test("that do not fit into one answer are returned in pages, and none is lost", async () => {
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const input = { file: "packages/big/x.ts", cursor };
      const result = await call("guidelines_for", input);
      expect(JSON.stringify(result.structuredContent).length).toBeLessThan(1.5 * maxAnswerLength);
      const page = structureOf(result);
      seen.push(...page.applied.map((one: { title: string }) => one.title));
      cursor = page.next_cursor;
      expect(textOf(result).includes("[cut: there is more")).toBe(cursor !== undefined);
    } while (cursor !== undefined);
    expect(seen.filter((title) => title.startsWith("Rule "))).toHaveLength(60);
    expect(new Set(seen).size).toBe(seen.length);
  });
});

describe("specs", () => {
  test("are found by words and by framework, with file and line", async () => {
    const result = await call("spec_search", { q: "refund", framework: "kiro" });
    const [first] = structureOf(result).specs;
    expect(first).toMatchObject({ framework: "fw_a", path: expect.any(String), line: expect.any(Number) });
    expect(textOf(result)).toContain(`${first.path}:${first.line}`);
  });

  test("are returned completely", async () => {
    const result = await call("spec_get", { id: "fw_a-checkout-requirements-req1" });
    expect(structureOf(result).spec.metadata.code_refs).toEqual(["src/api/orders.ts"]);
    expect(textOf(result)).toContain("Code: src/api/orders.ts");
  });

  test("show what changed files affect", async () => {
    const result = await call("spec_impact", { files: ["src/api/orders.ts"] });
    const { affected, total } = structureOf(result);
    expect(total).toBe(affected.length);
    expect(affected[0]).toMatchObject({ title: expect.any(String), because: expect.any(Array) });
    expect(textOf(result)).toContain("fw_a-checkout-requirements-req1");
  });

  test("show which criteria no test names", async () => {
    const { totals, criteria } = structureOf(await call("spec_coverage", {}));
    expect(totals).toMatchObject({ criteria: 3, covered: 1 });
    expect(criteria.map((one: { id: string }) => one.id)).toEqual(["checkout#1.2", "checkout#2.1"]);
    const all = await call("spec_coverage", { show: "all", feature: "checkout" });
    expect(textOf(all)).toContain("checkout#1.1");
    expect(textOf(all)).toContain("tests: src/api/orders.test.ts:1");
    expect((await call("spec_coverage", { feature: "nope" })).isError).toBe(true);
  });

  test("show what is stale according to Git", async () => {
    const result = structureOf(await call("spec_stale", {}));
    expect(result).toMatchObject({ total: 0, stale: [], notes: [expect.stringContaining("repository")] });
  });

  test("are also resources", async () => {
    const { contents } = await client.readResource({ uri: "kit://specs/fw_a-checkout-requirements-req1" });
    expect(contents[0]).toMatchObject({
      mimeType: "text/markdown",
      text: expect.stringContaining("Place an order"),
    });
    const missing = client.readResource({ uri: "kit://specs/nope" });
    await expect(missing).rejects.toBeInstanceOf(ResourceNotFoundError);
    await expect(missing).rejects.toThrow("There is no kit://specs/nope.");
  });

  test("that are long are cut as resources, with the number of missing characters and the tool that returns the rest", async () => {
    const [found] = structureOf(await call("guidelines_search", { q: "endless" })).guidelines;
    const { contents } = await client.readResource({ uri: `kit://guidelines/${found.id}` });
    const text = contents.map((part) => ("text" in part ? part.text : "")).join();
    expect(text.length).toBeLessThan(1.1 * maxAnswerLength);
    expect(text.slice(-80)).toMatch(/\[cut: 1,5\d\d,\d{3} more characters; guideline_get returns them\]$/);
  });
});

test("spec_impact uses files changed since a revision, committed or not", async () => {
  const repository = await temporaryProject(shopFiles);
  const git = (...args: string[]): void => {
    execFileSync("git", ["-c", "user.name=Test", "-c", "user.email=test@example.org", ...args], {
      cwd: repository.root,
    });
  };
  git("init", "-q", "-b", "main");
  git("add", ".");
  git("commit", "-qm", "Open the shop");
  await writeFile(join(repository.root, "src/api/orders.ts"), "export const orders = [1];\n");
  const connected = await connect("auto", repository.root);
  try {
    const result = await connected.callTool({ name: "spec_impact", arguments: { since: "main" } });
    expect(structureOf(result)).toMatchObject({ changed: ["src/api/orders.ts"] });
    expect(textOf(result)).toContain("fw_a-checkout-requirements-req1");
  } finally {
    await connected.close();
    await repository.remove();
  }
});

test("an error becomes a result that a model can read", async () => {
  const failures: readonly [string, Record<string, unknown>, string][] = [
    ["guideline_get", { id: "nope" }, "There is no guideline"],
    ["spec_get", { id: "__proto__" }, "There is no spec block"],
    ["spec_impact", {}, "Give files, ids or since"],
    ["spec_impact", { since: "main" }, "not a Git repository"],
    ["spec_search", { limit: 1_000 }, "limit"],
    ["spec_search", { colour: "red" }, "colour"],
    ["guidelines_for", { file: "../etc/passwd" }, "not inside the project"],
    ["guidelines_for", {}, "is required"],
    ["spec_impact", { files: ["/etc/passwd"] }, "not inside the project"],
    ["guideline_convert", { id: "x", format: "docx" }, "format"],
  ];
  for (const [name, input, message] of failures) {
    const result = await call(name, input);
    expect([name, result.isError]).toEqual([name, true]);
    expect(textOf(result)).toContain(message);
    expect(textOf(result)).not.toContain(shop.root);
  }
});

test("answers follow the files while they change", async () => {
  await writeFile(join(shop.root, "AGENTS.md"), "# Shop\n\n## Zebras\n\nStripes only.\n");
  await expect.poll(async () => structureOf(await call("guidelines_search", { q: "stripes" })).total).toBe(1);
});

/** Starts a server in a separate process, with line-by-line access. */
function spawnServer() {
  const child = spawn(process.execPath, [script, shop.root], { stdio: ["pipe", "pipe", "pipe"] });
  const output = { output: "", errors: "" };
  child.stdout.on("data", (chunk: Buffer) => {
    output.output += chunk.toString("utf8");
  });
  child.stderr.on("data", (chunk: Buffer) => {
    output.errors += chunk.toString("utf8");
  });
  child.stdin.on("error", () => undefined);
  const send = (message: object): void => {
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  };
  const params = {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: { name: "raw", version: "1" },
  };
  send({ id: 1, method: "initialize", params });
  return { child, said: output, send, exit: once(child, "exit").then(([code]) => code as unknown) };
}

test("stdout carries the protocol only, and the process ends when the client disconnects", async () => {
  const { child, said, send, exit } = spawnServer();
  child.stdin.write("this is not JSON\n");
  send({ method: "notifications/initialized" });
  send({ id: 2, method: "tools/list" });
  await expect.poll(() => said.output).toContain('"id":2');
  child.stdin.end();
  expect(await exit).toBe(0);
  for (const line of said.output.trim().split("\n")) {
    expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" });
  }
});

test("a client that closes its output right after a request still gets its answers", async () => {
  const { child, said, send, exit } = spawnServer();
  send({ id: 2, method: "tools/call", params: { name: "spec_search", arguments: { q: "refund" } } });
  child.stdin.end(`${JSON.stringify({ jsonrpc: "2.0", id: 3, method: "ping" })}`);
  expect(await exit).toBe(0);
  expect(said.output).toContain('"id":2');
  expect(said.output).toContain('"id":3');
});

campaignTest(
  "a line of 40 MB is refused, one of 9 MB is read, and the next request is answered",
  async () => {
    const { child, said, send, exit } = spawnServer();
    const q = "x".repeat(9_000_000);
    send({ id: 2, method: "tools/call", params: { name: "spec_search", arguments: { q } } });
    await expect.poll(() => said.output).toContain('"id":2');
    for (let count = 0; count < 40; count += 1) child.stdin.write("x".repeat(1_048_576));
    child.stdin.write("\n");
    send({ id: 3, method: "ping" });
    await expect.poll(() => said.output).toContain('"id":3');
    expect(said.output).toContain(
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request: a line is longer than 10 MB."}}',
    );
    child.stdin.end();
    expect(await exit).toBe(0);
  },
);

campaignTest(
  "the process ends when the client disconnects in the middle of a line or before its answers",
  async () => {
    const midLine = spawnServer();
    await expect.poll(() => midLine.said.output).toContain('"id":1');
    midLine.child.stdin.write("x".repeat(3_000_000));
    const busy = spawnServer();
    await expect.poll(() => busy.said.output).toContain('"id":1');
    for (let id = 2; id < 500; id += 1) busy.send({ id, method: "tools/list" });
    for (const { child } of [midLine, busy]) {
      child.stdout.destroy();
      child.stdin.destroy();
    }
    expect(await Promise.all([midLine.exit, busy.exit])).toEqual([0, 0]);
  },
);
