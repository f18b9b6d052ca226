import { type AgentDefinition, createAgent } from "../../../agents/define/create-agent.ts";
import { createScriptedModel, type ScriptedTurn } from "../../../testing/scripted-model.ts";

/**
 * How a scripted agent works: `honest`; `hurried`, whose first test asserts nothing; `empty`, whose tests never do; `idle`, which changes
 * nothing; `ticking`, which ticks the box and does nothing else; `testing`, which writes tests alone; `coding`, which writes code
 * alone, and spoils the tests.
 */
export type CoderMode = "honest" | "hurried" | "empty" | "idle" | "ticking" | "testing" | "coding";

interface Work {
  readonly title: string;
  readonly mark: string;
  readonly code: string;
  readonly test: string;
  readonly honest: string;
  readonly empty: string;
}

/** The work on each task of `specRepository`. */
const works: readonly Work[] = [
  {
    title: "Add up",
    mark: "// sum\n",
    code: "export function sum(lines) {\n  return lines.reduce((total, { price, count }) => total + price * count, 0);\n}\n",
    test: "src/sum.test.mjs",
    honest:
      'test("cart#1.1 adds up", () => assert.equal(sum([{ price: 2, count: 3 }, { price: 1, count: 1 }]), 7));\n',
    empty: 'test("cart#1.1 adds up", () => assert.ok(typeof sum === "function"));\n',
  },
  {
    title: "Discounts",
    mark: "// discount\n",
    code: "export function discount(total, percent) {\n  return total - (total * percent) / 100;\n}\n",
    test: "src/discount.test.mjs",
    honest: 'test("cart#1.2 takes it off", () => assert.equal(discount(200, 10), 180));\n',
    empty: 'test("cart#1.2 takes it off", () => assert.ok(typeof discount === "function"));\n',
  },
  {
    title: "Tidy up",
    mark: "// tidy\n",
    code: "export const tidied = true;\n",
    test: "src/version.test.mjs",
    honest: "",
    empty: "",
  },
];

const file = "src/cart.mjs";

function turnsOf(
  { mark, code, test, honest, empty }: Work,
  mode: CoderMode,
): readonly (readonly ScriptedTurn[])[] {
  const name = test.slice("src/".length).split(".")[0];
  const head = `import assert from "node:assert/strict";\nimport { test } from "node:test";\nimport { ${name} } from "./cart.mjs";\n\n`;
  const write = (path: string, content: string): ScriptedTurn => ({
    toolCalls: [{ name: "write", input: { path, content } }],
  });
  const coding = { toolCalls: [{ name: "edit", input: { path: file, old: mark, new: code } }] };
  const tests = (text: string): readonly ScriptedTurn[] =>
    text === "" ? [] : [write(test, `${head}${text}`)];
  const done = { text: "Done." };
  switch (mode) {
    case "honest":
      return [[coding, ...tests(honest), done]];
    case "hurried":
      return [
        [coding, ...tests(empty), done],
        [...tests(honest), done],
      ];
    case "empty":
      return [[coding, ...tests(empty), done]];
    case "idle":
      return [[done]];
    case "ticking":
      return [
        [
          {
            toolCalls: [
              {
                name: "edit",
                input: { path: ".kiro/specs/cart/tasks.md", old: "- [ ] 1.1", new: "- [x] 1.1" },
              },
            ],
          },
          done,
        ],
      ];
    case "testing":
      return [[write(file, "export const spoiled = true;\n"), ...tests(honest), done]];
    case "coding":
      return [[coding, ...tests(empty), done]];
  }
}

/** A coding agent whose model is a script that reads only the conversation, so that it goes on after a crash. */
export function coder(mode: CoderMode): AgentDefinition {
  const model = createScriptedModel(({ prompt }) => {
    const texts = prompt.map(({ role, content }) => (role === "user" ? JSON.stringify(content) : ""));
    const isPrompt = (text: string): boolean =>
      /Do this task|The task is not done\.|A person has looked|other work has changed/.test(text);
    const prompts = texts.filter(isPrompt);
    const begun = prompts.findLastIndex((text) => text.includes("Do this task"));
    const work = works.find(({ title }) => prompts[begun]?.includes(title));
    const turns = work === undefined ? undefined : turnsOf(work, mode);
    const last = texts.findLastIndex(isPrompt);
    const turn = prompt.slice(last).filter(({ role }) => role === "assistant").length;
    return (
      turns?.[Math.min(prompts.length - 1 - begun, turns.length - 1)]?.[turn] ?? { text: "Nothing is left." }
    );
  });
  return createAgent({ model, instructions: "You do tasks." });
}
