import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { runKit } from "../testing/run-kit.ts";

const files = {
  "src/agents/reviewer.ts": "export default {};\n",
  "src/agents/team/lead.ts": "export default {};\n",
  "src/workflows/release.mjs": "export async function run() {}\n",
};

test("kit types names agents and workflows with their modules, and --check fails when they have changed", async () => {
  await using folder = await createTemporaryRepository(files);
  const kit = (...args: string[]): ReturnType<typeof runKit> =>
    runKit(["types", ...args], { cwd: folder.root });
  const path = join(folder.root, "kit.types.ts");
  expect(await kit("--check")).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("Run 'kit types'"),
  });
  expect(JSON.parse((await kit("--json")).stdout)).toEqual({ path: "kit.types.ts", changed: true });
  const written = await readFile(path, "utf8");
  expect(written).toContain(`export declare const agents: {
  readonly "reviewer": typeof import("./src/agents/reviewer.ts");
  readonly "team.lead": typeof import("./src/agents/team/lead.ts");
};
`);
  expect(written).toContain(`export declare const workflows: {
  readonly "release": object;
};
`);
  expect((await kit("--check")).exitCode).toBe(0);
  await writeFile(join(folder.root, "src/agents/another.ts"), "export default {};\n");
  expect((await kit("--check")).exitCode).toBe(1);
  await writeFile(path, "export const mine = 1;\n");
  expect(await kit()).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("kit did not write it") });
  expect(await readFile(path, "utf8")).toBe("export const mine = 1;\n");
});
