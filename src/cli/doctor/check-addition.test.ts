import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { withoutKeys } from "../testing/agents-project.ts";
import { runKit } from "../testing/run-kit.ts";

test("the doctor checks the package of the configured sandbox for a version that kit accepts, and both halves of its key", async () => {
  await using folder = await createTemporaryRepository({
    "package.json": "{}",
    "kit.toml": '[agent]\nsandbox = "modal"\n',
  });
  const { root } = folder;
  const install = async (version: string) => {
    await mkdir(join(root, "node_modules/modal"), { recursive: true });
    await writeFile(
      join(root, "node_modules/modal/package.json"),
      JSON.stringify({ name: "modal", version }),
    );
  };
  const inspect = async (env: Readonly<Record<string, string>> = {}) => {
    const { stdout } = await runKit(["doctor", "--json"], {
      cwd: root,
      env: { ...withoutKeys, HOME: root, ...env },
    });
    const { checks } = JSON.parse(stdout) as { checks: { name: string; status: string; message: string }[] };
    return checks
      .filter(({ name }) => name === "modal")
      .map(({ status, message }) => `${status}: ${message}`);
  };
  const both = "warning: MODAL_TOKEN_ID and MODAL_TOKEN_SECRET are not set.";
  expect(await inspect()).toEqual(["error: The package modal is not installed.", both]);
  await install("1.2.0");
  expect((await inspect())[0]).toBe("error: modal 1.2.0 is installed, and this kit takes 0.11.1.");
  await install("0.11.1");
  expect(await inspect({ MODAL_TOKEN_ID: "ak-x" })).toEqual([
    "ok: modal 0.11.1",
    "warning: MODAL_TOKEN_SECRET is not set.",
  ]);
  const set = { MODAL_TOKEN_ID: "ak-x", MODAL_TOKEN_SECRET: "as-x" };
  expect((await inspect(set))[1]).toBe("ok: MODAL_TOKEN_ID and MODAL_TOKEN_SECRET are set");
  await writeFile(join(root, ".modal.toml"), "[default]\n");
  expect((await inspect())[1]).toBe("ok: the key of ~/.modal.toml");
});
