import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { runCode } from "../sources/run-code.suite.ts";

const helper = `import { createAgent } from "kit";
import { verb } from "./_verb.ts";
export default createAgent({ instructions: verb });
`;
const files = {
  "package.json": "{}",
  "src/agents/helper.ts": helper,
  "src/agents/_verb.ts": 'export const verb = "Helping";\n',
  "src/agents/other.ts": 'import { createAgent } from "kit";\nexport default createAgent({});\n',
};

test("after a reload, the new code answers in the existing session; running operations end with the old code", async () => {
  await using folder = await createTemporaryRepository(files);
  const code = `
const begun = Promise.withResolvers();
const release = Promise.withResolvers();
const told = [];
const app = await open(async (call, index) => {
  told.push(systemOf(call));
  if (told.length === 2) {
    begun.resolve();
    await release.promise;
  }
  return { text: String(told.length) };
});
const ask = async () => (await (await app.instance("helper", "1")).session().prompt("x")).text;
const answers = [await ask()];
const running = ask();
await begun.promise;
write("src/agents/_verb.ts", 'export const verb = "Serving";');
await app.reload();
const next = ask();
release.resolve();
answers.push(await running, await next);
const history = await (await app.instance("helper", "1")).session().history();
await app.close();
say({ told, answers, history: history.length });`;
  expect(await runCode(folder.root, code)).toEqual({
    told: ["Helping", "Helping", "Serving"],
    answers: ["1", "2", "3"],
    history: 6,
  });
});

test("a file that breaks is reported and the other files still work; after a repair it works again", async () => {
  await using folder = await createTemporaryRepository(files);
  const code = `
const app = await open();
const names = () => app.agents().map(({ name }) => name);
const state = async () => [names(), app.problems().map(({ path }) => path), await app.instance("helper", "1").then(() => "ok", ({ code }) => code)];
const states = [];
write("src/agents/helper.ts", "export default {");
await app.reload();
states.push(await state());
await (await app.instance("other", "1")).session().prompt("x");
write("src/agents/helper.ts", ${JSON.stringify(helper)});
await app.reload();
states.push(await state());
await app.close();
say(states);`;
  expect(await runCode(folder.root, code)).toEqual([
    [["other"], ["src/agents/helper.ts"], "agent_not_found"],
    [["helper", "other"], [], "ok"],
  ]);
});
