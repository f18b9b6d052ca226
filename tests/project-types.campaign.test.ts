import { execFile } from "node:child_process";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, expect, test } from "vitest";
import { repositoryRoot } from "../scripts/files.ts";
import { endAll, type Running, serveKit } from "../src/cli/testing/served-kit.ts";
import { createTemporaryRepository } from "../src/testing/temporary-repository.ts";

const running: Running = new Map();
afterEach(() => endAll(running));

const tsconfig = {
  compilerOptions: {
    module: "nodenext",
    target: "es2024",
    strict: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    types: ["node"],
  },
};
const release = `import { defineWorkflow } from "kit";
import { z } from "zod";
export default defineWorkflow({
  payload: z.object({ version: z.string() }),
  run: ({ payload }) => ({ tag: "v" + payload.version, at: new Date(0) }),
});
`;
const reviewer =
  'import { createAgent } from "kit";\nexport default createAgent({ instructions: "Review." });\n';
const client = `import { KitClient } from "kit/client";
const { agents, workflows } = new KitClient<typeof import("./kit.types.ts")>({ baseUrl: "http://127.0.0.1:1" });
`;

test("kit dev writes the types of a workflow and an agent when their files are added, and the compiler checks a client against them", async () => {
  await using folder = await createTemporaryRepository({
    "package.json": '{ "type": "module" }',
    "tsconfig.json": JSON.stringify(tsconfig),
    "src/agents/reviewer.ts": reviewer,
  });
  const { root } = folder;
  await mkdir(join(root, "node_modules/@types"), { recursive: true });
  await symlink(repositoryRoot, join(root, "node_modules/kit"));
  for (const name of ["zod", "@types/node", "undici-types"])
    await symlink(join(repositoryRoot, "node_modules", name), join(root, "node_modules", name));
  const types = (): Promise<string> => readFile(join(root, "kit.types.ts"), "utf8");
  const { hasOutput, stop } = await serveKit(running, ["dev", "--port", "0"], { cwd: root });
  await hasOutput("kit.types.ts written");
  expect(await types()).not.toContain("release");

  await mkdir(join(root, "src/workflows"));
  await writeFile(join(root, "src/workflows/release.ts"), release);
  await expect.poll(types).toContain('"release": typeof import("./src/workflows/release.ts")');
  expect(await stop("SIGTERM")).toBe(0);

  await writeFile(
    join(root, "right.ts"),
    `${client}const { result } = await workflows.invoke("release", { version: "1.2.0" });
export const released: { tag: string; at: string } = result;
await agents.invoke("reviewer", { id: "1", message: "Look." });
`,
  );
  await writeFile(
    join(root, "wrong.ts"),
    `${client}await workflows.invoke("release", { version: 1 });
await workflows.invoke("release");
await workflows.invoke("relaese", { version: "1.2.0" });
const { result } = await workflows.invoke("release", { version: "1.2.0" });
export const at: Date = result.at;
await agents.invoke("reviwer", { id: "1", message: "Look." });
`,
  );
  const messages = await compile(root);
  expect(messages.map((message) => message.replace(/\).*/, ")").replace(/,\d+/, ""))).toEqual([
    "wrong.ts(3)",
    "wrong.ts(4)",
    "wrong.ts(5)",
    "wrong.ts(7)",
    "wrong.ts(8)",
  ]);
});

/** Returns the compiler's messages, without the lines that explain them. */
async function compile(cwd: string): Promise<readonly string[]> {
  const tsc = join(repositoryRoot, "node_modules/typescript/bin/tsc");
  const { stdout } = await promisify(execFile)(process.execPath, [tsc, "--pretty", "false"], { cwd }).catch(
    (error: { readonly stdout: string }) => error,
  );
  return stdout.split("\n").filter((line) => /^\S/.test(line));
}
