import { expect, test } from "vitest";
import { serveForTests } from "../../server/testing/serve-for-tests.ts";
import { type RunResult, runKit } from "../testing/run-kit.ts";

const served = serveForTests({
  files: {
    "src/agents/host.ts": `export const triggers = { webhook: true };
const schema = { type: "object", properties: { guests: { type: "integer" } }, required: ["guests"] };
const book = {
  name: "book",
  description: "Books a table.",
  input: { type: "object" },
  execute: async (_, { ask }) => JSON.stringify(await ask({ message: "For how many?", schema })),
};
export default { kind: "kit.agent", describe: async () => ({ tools: [book] }) };
`,
  },
});

const kit = (...words: string[]): Promise<RunResult> =>
  runKit(["approvals", ...words, "--url", served.url], { cwd: served.root });

/** Begins work that asks, and returns the id of its question. */
async function asking(instance: string): Promise<string> {
  await served.send(`/agents/host/${instance}/dispatch`, { body: { input: "call book {}" } });
  const list = async (): Promise<string> => (await kit("list", "host", instance)).stdout;
  await expect.poll(list, { timeout: 20_000 }).toMatch(/book asks: For how many\?$/m);
  return (await list()).split("\t", 1)[0] ?? "";
}

test("a question is listed, shown and answered with JSON of its schema", async () => {
  const id = await asking("one");
  const { stdout } = await kit("show", id);
  expect(stdout).toContain("book asks: For how many?");
  expect(stdout).toContain('"guests"');
  for (const verb of ["approve", "allow"]) {
    const refused = await kit(verb, id);
    expect(refused.exitCode).not.toBe(0);
    expect(refused.stderr).toContain("book asks a question, which an answer ends.");
    expect(refused.stderr).toContain(`kit approvals answer ${id} <answer>`);
  }
  const wrong = await kit("answer", id, "four");
  expect(wrong.exitCode).not.toBe(0);
  expect(wrong.stderr).toContain("The answer is not what book asks for");
  expect(await kit("answer", id, '{"guests": 4}')).toMatchObject({ exitCode: 0 });
  expect((await kit("answer", id, '{"guests": 4}')).stderr).toContain("No call waits");
});

test("a question is declined, and a call that needs approval has no answer", async () => {
  expect((await kit("deny", await asking("two"), "--reason", "Later.")).stderr).toContain(
    "Declined: host/two",
  );
  await served.send("/agents/careful/one/dispatch", { body: { input: "pay 5" } });
  const list = async (): Promise<string> => (await kit("list", "careful")).stdout;
  await expect.poll(list, { timeout: 20_000 }).toContain("careful/one");
  const refused = await kit("answer", (await list()).split("\t", 1)[0] ?? "", "yes");
  expect(refused.stderr).toContain("The call of pay is no question.");
});
