import { afterEach, expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { withoutKeys } from "../testing/agents-project.ts";
import { endAll, type Running, serveKit } from "../testing/served-kit.ts";

const running: Running = new Map();
afterEach(() => endAll(running));

const kit = new URL("../../index.ts", import.meta.url).href;

const configurations = {
  "kit.toml": (line: string) => `[agent]\nmodel = "offline/guide"\n[server]\n${line.replace(":", " =")}\n`,
  "kit.config.ts": (line: string) =>
    `export default { agent: { model: "offline/guide" }, server: { ${line} } };\n`,
} as const;

test.each(["kit.toml", "kit.config.ts"] as const)(
  "kit dev serves with a changed %s, goes on with its work, and keeps the one from before if it is broken",
  async (name) => {
    const configuration = configurations[name];
    await using project = await createTemporaryRepository({
      [name]: configuration("console: true"),
      "package.json": '{"type": "module"}',
      "src/workflows/release.ts": `import { defineWorkflow } from "${kit}";\nexport default defineWorkflow({ run: async (ctx) => await ctx.waitFor("go") });\n`,
    });
    const served = await serveKit(running, ["dev", "--port", "0"], { cwd: project.root, env: withoutKeys });
    const post = async (path: string, body: unknown): Promise<{ run_id: string }> => {
      const headers = { "content-type": "application/json" };
      const reply = await fetch(`${served.url}${path}`, {
        method: "POST",
        headers,
        body: JSON.stringify(body),
      });
      expect(reply.status).toBe(202);
      return (await reply.json()) as { run_id: string };
    };
    const { run_id } = await post("/workflows/release", {});
    expect((await fetch(`${served.url}/health`)).status).toBe(200);

    await project.write(name, configuration("consle: false"));
    await served.hasOutput("The configuration from before stays in use.");
    expect(served.stderr()).toContain("did you mean");
    expect((await fetch(`${served.url}/health`)).status).toBe(200);

    await project.write(name, configuration("console: false"));
    await served.hasOutput(`${name} changed: serving again with it`);
    // Without the page there is nothing to open, and the address stays.
    await expect.poll(() => served.stdout(), { timeout: 20_000 }).toContain(`At ${served.url}`);
    await post(`/runs/${run_id}/signal`, { name: "go", payload: "done" });
    const result = async (): Promise<unknown> => await (await fetch(`${served.url}/runs/${run_id}`)).json();
    await expect.poll(result, { timeout: 20_000 }).toMatchObject({ status: "completed", result: "done" });
  },
);
