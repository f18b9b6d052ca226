import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { withoutKeys } from "../testing/agents-project.ts";
import { beginProcess } from "../testing/run-kit.ts";
import { endAll, type Running, serveKit } from "../testing/served-kit.ts";

const folder = await createTemporaryRepository({
  "package.json": '{"type": "module"}',
  // Throws outside of every promise, as a listener of a library would.
  "src/workflows/stray.ts": `import type { KitContext } from "kit";
export async function run(ctx: KitContext) {
  const throws = ctx.env["STRAY"] === "1";
  if (throws) setTimeout(() => { throw new Error("stray, with the key " + ctx.env["KIT_API_KEYS"]); }, 300);
  if (throws) await ctx.step("second", () => new Promise(() => undefined));
  return "done";
}
`,
});
const running: Running = new Map();
afterEach(() => endAll(running));
afterAll(() => folder[Symbol.asyncDispose]());

test.each(["start", "dev"])(
  "kit %s logs an uncaught exception, hands on its work, cleans up and exits with 1",
  async (command) => {
    const key = "open-sesame-0123456789";
    const serve = (stray: string) =>
      serveKit(running, [command, "--port", "0"], {
        cwd: folder.root,
        env: { ...withoutKeys, STRAY: stray, KIT_API_KEYS: key },
        begin: beginProcess,
      });
    const first = await serve("1");
    const started = await fetch(`${first.url}/workflows/stray`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: "{}",
    });
    const { run_id } = (await started.json()) as { run_id: string };
    const [line] = running.keys();
    expect(await line?.ended).toBe(1);
    expect(first.stderr()).toContain("No code caught this error");
    expect(first.stderr()).toMatch(/stray, with the key \[secret\][\s\S]*at /);
    expect(first.stderr()).not.toContain(key);
    // The record of a running server is removed by the orderly end only.
    expect(readdirSync(join(folder.root, ".kit", "servers"))).toEqual([]);
    await endAll(running);

    const second = await serve("0");
    const read = async (): Promise<unknown> =>
      await (
        await fetch(`${second.url}/runs/${run_id}`, { headers: { authorization: `Bearer ${key}` } })
      ).json();
    await expect
      .poll(read, { timeout: 10_000 })
      .toMatchObject({ run_id, status: "completed", result: "done" });
  },
);
