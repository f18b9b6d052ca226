// As `createAgent` of kit makes them: vitest finds no package of that name beside a temporary file.
const agent = (profile: string): string =>
  `export const triggers = { webhook: true };\n${hiddenAgent(profile)}`;

const hiddenAgent = (profile: string): string =>
  `export default { kind: "kit.agent", describe: async () => (${profile}) };\n`;

const webhook = (scheme: string, secret: string): string => `export default {
  kind: "kit.webhook",
  scheme: "${scheme}",
  secret: () => "${secret}",
  handle: ({ payload, dispatch }) =>
    payload.count ? { handled: (globalThis.handled = (globalThis.handled ?? 0) + 1) } :
    payload.fail ? Promise.reject(new Error("secret of the webhook")) : dispatch("hidden", { id: "thread", input: payload }).then(() => undefined),
};
`;

/** The secrets with which senders sign for the project's webhooks. */
export const webhookSecrets = {
  github: "github-secret",
  standard: "whsec_c3RhbmRhcmQgc2VjcmV0LCAyNCBieXRlcw==",
  slack: "slack-secret",
} as const;

/** A project with agents, workflows and webhooks, by path. */
export const serviceFiles: Readonly<Record<string, string>> = {
  "CLAUDE.md": "# Rules\n\n## Money\n\nAmounts are whole cents.\n",
  "src/agents/default.ts": agent("{}"),
  "src/agents/echo.ts": agent(`{ instructions: "Say it again." }`),
  "src/agents/hidden.ts": hiddenAgent("{}"),
  "src/agents/broken.ts": "export default createAgent({\n",
  "src/agents/careful.ts": `const pay = {
  name: "pay",
  description: "Pays an amount.",
  input: { type: "object", properties: { cents: { type: "integer" } }, required: ["cents"] },
  needsApproval: true,
  execute: ({ cents }) => \`Paid \${cents} cents.\`,
};
${agent("{ tools: [pay] }")}`,
  ...Object.fromEntries(
    Object.entries(webhookSecrets).map(([scheme, secret]) => [
      `src/webhooks/${scheme}.ts`,
      webhook(scheme, secret),
    ]),
  ),
  "src/webhooks/unset.ts": webhook("github", ""),
  "src/workflows/asked.ts":
    "export const run = ({ req }) => ({ source: new URL(req.url).searchParams.getAll('source') });\n",
  "src/workflows/strict.ts": `export const payload = {
  type: "object",
  properties: { n: { type: "integer" } },
  required: ["n"],
};
export async function run(ctx) {
  ctx.log.info("Doubling");
  return { doubled: await ctx.step("double", () => ctx.payload.n * 2) };
}
`,
  "src/workflows/slow.ts": `export async function run(ctx) {
  for (let second = 0; second < 30; second += 1) {
    ctx.log.info(\`second \${second}\`);
    await ctx.sleep(1000);
  }
}
`,
  "src/workflows/failing.ts": `export async function run() {
  throw new Error("secret of the workflow");
}
`,
  "src/workflows/waiting.ts": `export async function run(ctx) {
  return { said: await ctx.waitFor("word") };
}
`,
  "src/workflows/talking.ts": `export async function run(ctx) {
  for (let line = 1; line <= Number(ctx.payload.lines ?? 1); line += 1) ctx.log.info(\`line \${line}\`);
  return "done";
}
`,
};
