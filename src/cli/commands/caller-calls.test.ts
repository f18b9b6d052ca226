import { expect, test } from "vitest";
import { serveForTests } from "../../server/testing/serve-for-tests.ts";
import { type RunResult, runKit } from "../testing/run-kit.ts";

const served = serveForTests();

const kit = (...words: string[]): Promise<RunResult> =>
  runKit(["approvals", ...words, "--url", served.url], { cwd: served.root });

test("a call of a caller's tool is listed as the caller's, and can only be denied", async () => {
  const { body } = await served.send("/agents/echo/one/dispatch", {
    body: { input: "call locate {}", tools: [{ name: "locate" }] },
  });
  const list = async (): Promise<string> => (await kit("list", "echo")).stdout;
  await expect.poll(list, { timeout: 20_000 }).toMatch(/\techo\/one\t.*locate.* \(its caller answers\)$/m);
  const id = (await list()).split("\t", 1)[0] ?? "";
  for (const words of [
    ["approve", id],
    ["allow", id],
  ]) {
    const refused = await kit(...words);
    expect(refused.exitCode).not.toBe(0);
    expect(refused.stderr).toContain("The caller runs locate, and answers the call with its result.");
    expect(refused.stderr).toContain(`kit approvals deny ${id}`);
  }
  expect(await kit("deny", id, "--reason", "Not now.")).toMatchObject({ exitCode: 0 });
  const status = async (): Promise<string> =>
    (await served.send(`/dispatches/${body.dispatch_id}`)).body.status;
  await expect.poll(status, { timeout: 20_000 }).toBe("completed");
});
