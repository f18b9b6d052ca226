import { afterEach, expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { runKit } from "../testing/run-kit.ts";
import { endAll, type Running, serveKit } from "../testing/served-kit.ts";

const running: Running = new Map();
afterEach(() => endAll(running));

const webhook = (secret: string): string => `import { defineWebhook } from "kit/webhooks";
export default defineWebhook({ scheme: "github", secret: (env) => ${secret}, handle: () => undefined });
`;
const files = {
  "package.json": '{"type": "module"}',
  "src/webhooks/chat.ts": webhook("env.CHAT_SECRET"),
  "src/webhooks/trimmed.ts": webhook("env.TRIMMED_SECRET.trim()"),
};

test("start and dev warn of webhooks without a secret, and no longer once the secret is set", async () => {
  await using folder = await createTemporaryRepository(files);
  const options = { cwd: folder.root };
  for (const command of ["start", "dev"]) {
    const served = await serveKit(running, [command, "--port", "0"], options);
    for (const name of ["chat", "trimmed"]) {
      await served.hasOutput(`warning: src/webhooks/${name}.ts: It has no secret`);
    }
    await served.stop("SIGTERM");
  }
  const env = { CHAT_SECRET: "a chat secret", TRIMMED_SECRET: "another secret" };
  const served = await serveKit(running, ["start", "--port", "0"], { ...options, env });
  await served.stop("SIGTERM");
  expect(served.stderr()).not.toContain("secret");
});

test("the doctor names webhooks without a secret", async () => {
  await using folder = await createTemporaryRepository(files);
  const env = { CHAT_SECRET: "a chat secret" };
  const { stdout, exitCode } = await runKit(["doctor", "--json"], { cwd: folder.root, env });
  expect(exitCode).toBe(0);
  const { checks } = JSON.parse(stdout) as { checks: readonly { name: string }[] };
  expect(checks.find(({ name }) => name === "webhooks")).toMatchObject({
    status: "warning",
    message: "No secret for src/webhooks/trimmed.ts: every delivery is refused.",
    hint: expect.stringContaining("environment variable"),
  });
});
