import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { defineTool } from "../../agents/define/tool.ts";
import { virtual } from "../../sandboxes/virtual/virtual-sandbox.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { createOfflineGuide, pathsIn } from "./offline-guide.ts";

const folder = testFolder(afterAll);

function lookup(name: string, answer: (input: Record<string, unknown>) => string) {
  const asked: Record<string, unknown>[] = [];
  const tool = defineTool<Record<string, unknown>>({
    name,
    description: name,
    input: { type: "object" },
    execute: (input) => {
      asked.push(input);
      return answer(input);
    },
  });
  return { tool, asked };
}

test("a question about a file is answered with its guidelines and what a change affects, quoted", async () => {
  const rules = lookup(
    "guidelines_for",
    () => "1 guideline applies.\n\n## Money\n(CLAUDE.md:5)\n\nCents only.",
  );
  const impact = lookup("spec_impact", () => "- Checkout (.kiro/specs/checkout/design.md:3)");
  const agent = createTestAgent(createOfflineGuide(), { tools: [rules.tool, impact.tool] });
  const { text } = await agent
    .session()
    .prompt("Which rules apply to src/auth.ts and what would a change there affect?");
  expect(rules.asked).toEqual([{ file: "src/auth.ts" }]);
  expect(impact.asked).toEqual([{ files: ["src/auth.ts"] }]);
  expect(text).toContain("CLAUDE.md:5");
  expect(text).toContain(".kiro/specs/checkout/design.md:3");
  expect(text).toContain("I do not reason");
});

test("a question without a file is searched in the specs, word by word when all words find nothing", async () => {
  const search = lookup("spec_search", ({ q }) => (q === "refund" ? "- Refunds (a.md:1)" : "0 spec blocks."));
  const agent = createTestAgent(createOfflineGuide(), { tools: [search.tool] });
  const { text } = await agent.session().prompt("How does the refund of vouchers work?");
  expect(search.asked.map(({ q }) => q)).toContain("refund");
  expect(text).toContain("a.md:1");
  expect(text).toContain('Specs about "vouchers": nothing found.');
});

test("words that are in no spec are looked for in the files", async () => {
  const search = lookup("spec_search", () => "0 spec blocks.");
  const files = { "src/money.ts": "// half cents\nexport function roundCents() {}\n" };
  const sandbox = virtual({ folder, files });
  const agent = createTestAgent(createOfflineGuide(), { tools: [search.tool], sandbox });
  const { text } = await agent.session().prompt("Where is roundCents?");
  expect(text).toContain('Lines with "roundcents"\n\nsrc/money.ts:2:export function roundCents() {}');
});

test("the same question in the same project gives the same answer", async () => {
  const answers = [1, 2].map(async () => {
    const search = lookup("spec_search", () => "- A (a.md:1)");
    return (
      await createTestAgent(createOfflineGuide(), { tools: [search.tool] })
        .session()
        .prompt("tell me about login")
    ).text;
  });
  const [first, second] = await Promise.all(answers);
  expect(first).toBe(second);
});

test("it says so when it can look nothing up", async () => {
  const { text } = await createTestAgent(createOfflineGuide()).session().prompt("hello");
  expect(text).toContain("offline/guide");
});

test("a typed result is refused at once, with what to do", async () => {
  const session = createTestAgent(createOfflineGuide()).session();
  await expect(session.prompt("Count src/a.ts", { result: { type: "object" } })).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("typed result"),
    hint: expect.stringContaining("key"),
  });
});

test("a greeting is nothing to search for", async () => {
  const search = lookup("spec_search", () => "0 spec blocks.");
  const { text } = await createTestAgent(createOfflineGuide(), { tools: [search.tool] })
    .session()
    .prompt("Hi!");
  expect(search.asked).toEqual([]);
  expect(text).toContain("Name a file");
});

test("paths are found in any text, at most three, and none in an address", () => {
  expect(pathsIn("see src/a/b.ts, `docs/x.md` and Makefile at https://example.org/a/b.ts")).toEqual([
    "src/a/b.ts",
    "docs/x.md",
  ]);
  fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => pathsIn(text).length <= 3));
});
