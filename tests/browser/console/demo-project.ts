import { createTemporaryRepository } from "../../../src/testing/temporary-repository.ts";
import { createKitProcess, type KitProcess } from "../../faults/service/kit-process.ts";

/** A text that would run, load or disguise something if the page did not show it as plain text. */
export const hostileText = [
  '<script>globalThis.hacked = "script"</script>',
  '<img src=x onerror="globalThis.hacked = 1">',
  "[a link](javascript:globalThis.hacked=2) ![](https://evil.example/pixel.png)",
  "<iframe srcdoc='<script>parent.hacked=3</script>'></iframe>",
  "access \u202eresu\u202c granted",
].join("\n\n");

const agent = `import { createAgent, defineTool } from "kit";
import { createScriptedModel } from "kit/testing";

const hostile = ${JSON.stringify(hostileText)};
const said = \`The total is rounded **once per line**, as requirement 2 asks for.

\\\`\\\`\\\`ts
export function total(lines: readonly Line[]): number {
  return lines.reduce((sum, { cents }) => sum + cents, 0);
}
\\\`\\\`\\\`

| Case | Before | After |
| --- | ---: | ---: |
| one line | 1999 | 1999 |
| three lines | 5996 | 5997 |

1. I changed \\\`src/cart/total.ts\\\`.
2. The tests of the cart pass.\`;

const model = createScriptedModel(({ prompt }) => {
  const last = prompt.at(-1);
  const user = prompt.findLast(({ role }) => role === "user");
  const text = user.content.map((part) => part.text ?? "").join("").trim();
  if (last.role === "tool") return { deltas: said.split(/(?<= )/), delayMs: 1, usage: { input: 5200, output: 240, cacheRead: 4100 } };
  if (text.includes("count")) return { deltas: Array.from({ length: 400 }, (_, n) => "w" + n + " "), delayMs: 15 };
  if (text.includes("hostile")) return { text: hostile, toolCalls: [] };
  if (text.includes("long line")) return { text: "x".repeat(1_000_000) };
  if (text.includes("fail")) throw new Error("The provider is down.");
  if (text.includes("refund")) return { text: "The order was charged twice.", toolCalls: [{ name: "refund", input: { order: 1043, cents: 5997 } }] };
  return {
    reasoning: "The customer sees 5996 where 5997 is right: the sum is rounded twice.",
    toolCalls: [
      { name: "glob", input: { pattern: "**/*.ts" } },
      { name: "write", input: { path: "total.ts", content: "let sum = 0;\\nfor (const one of cents) sum += one;\\nreturn Math.round(sum);\\n" } },
      { name: "edit", input: { path: "total.ts", old: "return Math.round(sum);", new: "return sum;" } },
    ],
    usage: { input: 4800, output: 96, cacheRead: 3900 },
  };
});

const refund = defineTool({
  name: "refund",
  description: "Pays an order back.",
  input: { type: "object", properties: { order: { type: "integer" }, cents: { type: "integer" } }, required: ["order", "cents"] },
  needsApproval: true,
  execute: ({ order, cents }) => "Paid " + cents + " cents of order " + order + " back.",
});

export const triggers = { webhook: true };
export default createAgent(() => ({ model, instructions: "You mend the shop.", tools: [refund], allowWrite: true, allowedCommands: ["ls"] }));
`;

/** A shop with agents, workflows, specs and rules, and a model that follows a script. */
export const demoFiles: Readonly<Record<string, string>> = {
  "AGENTS.md": "# Rules\n\n## Money\n\nAmounts are whole cents.\n\n## Tests\n\nEvery change has a test.\n",
  ".kiro/specs/cart/requirements.md":
    "# Requirements\n\n### Requirement 1: Totals\n\n**User Story:** As a customer, I want right totals.\n\n#### Acceptance Criteria\n\n1. WHEN a cart has lines THEN the shop SHALL add their cents\n",
  ".kiro/specs/cart/design.md":
    "# Design\n\n## Totals\n\nSums are **whole cents**, in `src/cart/total.ts`; see [the tasks](tasks.md).\n\n| Case | Cents |\n| --- | ---: |\n| one line | 1999 |\n| three lines | 5997 |\n\n```ts\ntotal([1999, 1999, 1999]); // 5997\n```\n",
  ".kiro/specs/cart/tasks.md":
    "# Tasks\n\n- [x] 1. Add the lines in `src/cart/total.ts`, tested in `src/cart/total.test.ts`\n  - _Requirements: 1.1_\n- [ ] 2. Round once\n  - _Requirements: 2.4_\n",
  ".kiro/specs/checkout/requirements.md":
    "# Requirements\n\n### Requirement 1: Paying\n\n#### Acceptance Criteria\n\n1. WHEN a card is declined THEN the shop SHALL keep the cart\n2. WHEN an order is paid THEN the shop SHALL send a receipt\n3. WHILE a payment is open THE shop SHALL refuse a second one\n",
  "src/cart/total.test.ts":
    'import { test } from "node:test";\ntest("adds the cents of its lines (cart#1.1)", () => {});\ntest("keeps the cart of a declined card (checkout#1.1)", () => {});\ntest("refuses a second payment (checkout#1.3)", () => {});\n',
  "src/cart/total.ts":
    "export function total(cents) {\n  let sum = 0;\n  for (const one of cents) sum += one;\n  return Math.round(sum);\n}\n",
  "src/agents/mender.ts": agent,
  "src/workflows/nightly.ts": `export async function run(ctx) {
  ctx.log.info("Looking at " + (ctx.payload.orders ?? 3) + " orders");
  await ctx.step("read orders", () => 3);
  return { checked: await ctx.step("check totals", () => ctx.payload.orders ?? 3) };
}
`,
  "src/workflows/release.ts": `export async function run(ctx) {
  await ctx.step("build", () => "done");
  const { version } = await ctx.waitFor("go ahead");
  return { released: version };
}
`,
  "src/workflows/broken.ts": `export async function run(ctx) {
  await ctx.step("price list", () => { throw new TypeError("Cannot read the price of order 1043"); });
}
`,
};

export interface Demo extends AsyncDisposable {
  readonly kit: KitProcess;
  /** Sends JSON, with the key if there is one. */
  send(path: string, body?: unknown): Promise<unknown>;
}

/** `kit start` on the shop, with more files. */
export async function startDemo(
  environment: Readonly<Record<string, string>> = {},
  files: Readonly<Record<string, string>> = {},
): Promise<Demo> {
  const repository = await createTemporaryRepository({ ...demoFiles, ...files });
  await repository.init();
  await repository.commit("Open the shop", 1_790_000_000);
  const kit = await createKitProcess(repository.root);
  await kit.start(environment);
  return {
    kit,
    async send(path, body) {
      const reply = await fetch(`${kit.url}${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: {
          "content-type": "application/json",
          ...(environment.KIT_API_KEYS === undefined
            ? {}
            : { authorization: `Bearer ${environment.KIT_API_KEYS}` }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      if (!reply.ok) throw new Error(`${path}: ${await reply.text()}`);
      return await reply.json();
    },
    async [Symbol.asyncDispose]() {
      await kit.end("SIGKILL");
      await repository[Symbol.asyncDispose]();
    },
  };
}
