import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Sources } from "./sources.ts";

let folder: string;
beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "kit-two-projects-")));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const agent = 'export default { kind: "kit.agent", describe: async () => ({}) };\n';

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(join(folder, path)), { recursive: true });
  await writeFile(join(folder, path), text);
}

test("a tool that runs in one project keeps no file out of another project of the process", async () => {
  await write("first/src/agents/busy.ts", agent);
  const first = await Sources.open(join(folder, "first"));
  const end = first.guard.begin({ agent: "busy", instance_id: "1", session: "default", tool: "pay" });
  await write("second/src/agents/quick.ts", agent);
  const second = await Sources.open(join(folder, "second"));
  expect(second.loaded.problems).toEqual([]);
  expect(second.agent("quick")).toBeDefined();
  end();
  second.close();
  first.close();
});

test("a file of another project that a file of the project imports is still kept out, also through a third file", async () => {
  await write("near/src/agents/first.ts", agent);
  const near = await Sources.open(join(folder, "near"));
  await write("far/src/shared.ts", "");
  const far = await Sources.open(join(folder, "far"));
  await write("between.ts", 'import "./far/src/shared.ts";\n');
  await write("near/src/agents/direct.ts", `import "../../../far/src/shared.ts";\n${agent}`);
  await write("near/src/agents/through.ts", `import "../../../between.ts";\n${agent}`);
  await new Promise((resolve) => setTimeout(resolve, 60));
  const end = near.guard.begin({ agent: "first", instance_id: "1", session: "default", tool: "bash" });
  await write("far/src/shared.ts", "globalThis.written = true;\n");
  end();
  await near.reload();
  const held = near.loaded.problems.map(({ path, message }) => [path, message.split(" ")[0]]);
  expect(held).toEqual([
    ["src/agents/direct.ts", "../far/src/shared.ts"],
    ["src/agents/through.ts", "../far/src/shared.ts"],
  ]);
  far.close();
  near.close();
});
