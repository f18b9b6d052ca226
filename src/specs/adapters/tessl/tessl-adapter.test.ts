import { expect, test } from "vitest";
import { processorMs } from "../../../testing/processor-time.ts";
import { tesslAdapter } from "./tessl-adapter.ts";

const parse = (text: string, path = "specs/cart.spec.md") => tesslAdapter.parse({ path, text });

const first = `# Cart

What a buyer takes.

## Target

[@generate](../src/cart.ts)

## Capabilities

### Add a book

Adds one copy.

- Adds the book [@test](./cart.test.ts)
- When it is sold out, the cart SHALL refuse \`[@test] ./sold-out.check.ts\`

### Total

Sums up, see \`src/money.ts\`.

## API

\`\`\`ts { .api }
// [@test](./not-one.ts)
export function add(): void;
\`\`\`

## Dependencies

### Money

[@use](./money.spec.md) and [@use](@shop/vat)
`;

test("capabilities are requirements with their tests, targets and criteria; the rest are designs", () => {
  const { drafts, diagnostics } = parse(first);
  expect(diagnostics).toEqual([]);
  expect(
    drafts.map(({ id, spec_type, title }) => [id.kind === "base" && id.value, spec_type, title]),
  ).toEqual([
    ["fw_e-cart-cart", "design", "Cart"],
    ["fw_e-cart-add-a-book", "requirement", "Add a book"],
    ["fw_e-cart-total", "requirement", "Total"],
    ["fw_e-cart-api", "design", "API"],
    ["fw_e-cart-dependencies", "design", "Dependencies"],
  ]);
  const [intro, add, total] = drafts;
  expect(intro?.metadata.annotations).toEqual(["[@generate](../src/cart.ts)"]);
  expect(add).toMatchObject({
    tags: ["fw_e", "cart", "capability"],
    span: { start_line: 11, end_line: 16 },
    metadata: {
      spec: "Cart",
      targets: ["../src/cart.ts"],
      parents: [{ title: "Cart" }, { title: "Capabilities" }],
      acceptance_criteria: [
        { pattern: "unclassified", trigger: "", response: "Adds the book" },
        { pattern: "event_driven", trigger: "it is sold out", response: "the cart SHALL refuse" },
      ],
      ears_patterns: [
        { line: 15, number: "1" },
        { line: 16, number: "2" },
      ],
    },
    mentions: [
      { path: "./cart.test.ts", line: 15, role: "test" },
      { path: "./sold-out.check.ts", line: 16, role: "test" },
      { path: "../src/cart.ts", line: 7, role: "code" },
    ],
  });
  expect(total?.mentions).toEqual([
    { path: "../src/cart.ts", line: 7, role: "code" },
    { path: "src/money.ts", line: 20 },
  ]);
});

test("the second version names its targets in the front matter, and its sections are the capabilities", () => {
  const text =
    "---\nname: Sessions\ndescription: Who is in\ntargets:\n  - ../src/auth/*.ts\n  - ../src/session.ts\n---\n\n# Sessions\n\n## Sign in\n\nChecks.\n`[@test] ../tests/auth.test.ts`\n\n## Notes\n\nNone.\n";
  expect(parse(text).drafts).toMatchObject([
    {
      id: { value: "fw_e-cart-sign-in" },
      spec_type: "requirement",
      metadata: {
        frontmatter:
          "name: Sessions\ndescription: Who is in\ntargets:\n  - ../src/auth/*.ts\n  - ../src/session.ts",
        spec: "Sessions",
        targets: ["../src/auth/*.ts", "../src/session.ts"],
      },
      mentions: [
        { path: "../tests/auth.test.ts", role: "test" },
        { path: "../src/session.ts", role: "code" },
      ],
    },
    { spec_type: "design", title: "Notes" },
  ]);
});

test("a file without sections is one capability", () => {
  expect(parse("Adds numbers. [@generate](./add.ts)\n").drafts).toMatchObject([
    {
      id: { value: "fw_e-cart-cart" },
      spec_type: "requirement",
      content: "Adds numbers. [@generate](./add.ts)",
    },
  ]);
});

test("text that is not Tessl's has no block and no diagnostic, even under Tessl's file names", () => {
  const others = [
    "",
    "# Login page\n\n- button [ref=e2]\n",
    "---\ntitle: Docs\n---\n# A spec\n[@someone](https://example.com) wrote it\n",
    "---\nunclosed: [\n# A snapshot\n",
    "Write this:\n\n```md\n[@test](./a.test.ts)\n```\n",
    "<!-- [@generate](./a.ts) -->\n",
    "---\ntargets:\n---\n# None\n",
  ];
  for (const text of others) {
    expect(parse(text, "e2e/login.spec.md")).toEqual({ drafts: [], diagnostics: [] });
    expect(parse(text, ".tessl/tiles/a/docs/index.md")).toEqual({ drafts: [], diagnostics: [] });
  }
});

test("below .tessl the description of an API is enough", () => {
  const text = "# Package\n\n## Parse\n\n```ts { .api }\nfunction parse(): void;\n```\n";
  expect(parse(text, ".tessl/usage/pkg/index.md").drafts.map(({ title }) => title)).toEqual(["Parse"]);
  expect(parse(text, "docs/pkg.spec.md").drafts).toEqual([]);
});

test("the adapter reads only spec files and Tessl's folder", () => {
  for (const path of ["a.spec.md", "x/a.spec.md", ".tessl/a.md", "x/.tessl/b/c.md"])
    expect(tesslAdapter.matches(path)).toBe(true);
  for (const path of ["spec.md", "a.md", "tessl/a.md", ".tessl/tile.json", "a.spec.ts"])
    expect(tesslAdapter.matches(path)).toBe(false);
});

test("many targets, tests and capabilities in one file take linear room and time", () => {
  const lines = Array.from(
    { length: 20_000 },
    (_, n) => `## C${n}\n[@generate](./a${n}.ts) [@test](./t${n}.ts)\n`,
  );
  const start = processorMs();
  const { drafts } = parse(lines.join(""));
  expect(drafts.length).toBe(20_000);
  expect(Math.max(...drafts.map(({ mentions }) => mentions.length))).toBeLessThan(60);
  expect(processorMs() - start).toBeLessThan(5000);
});
