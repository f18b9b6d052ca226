import type { Files } from "./judge-change.ts";
import { type TestStyle, ticked } from "./test-styles.ts";

/** Work that people would accept. */
export interface HonestChange {
  readonly name: string;
  /** `closed`, or `ask` where a person has to decide; never `refused`. */
  readonly end: "closed" | "ask";
  /** For tests in JavaScript. */
  readonly change: (style: TestStyle) => Files;
  readonly before?: (style: TestStyle) => Readonly<Record<string, string>>;
}

const done = (style: TestStyle, test: string, code = style.after): Files => ({
  ...ticked,
  [style.code]: code,
  [style.tests]: style.head + style.oldTest + test,
});
const assertion = "assert.equal(discounted([5, 5], 3), 7);";
const testNamed = (title: string, body = assertion): string => `test(${title}, () => {\n  ${body}\n});\n`;
const key = '"takes it off (cart#1.2)"';
const testsOf =
  (test: string, code?: string) =>
  (style: TestStyle): Files =>
    done(style, test, code);
const importsDescribe = ({ head }: TestStyle): string => head.replace("{ test }", "{ describe, test }");

const asClass = `export class Cart {
  #prices;
  constructor(prices) {
    this.#prices = prices;
  }
  total(discount = 0) {
    return this.#prices.reduce((sum, price) => sum + price, 0) - discount;
  }
}
export const total = (prices) => new Cart(prices).total();
export const discounted = (prices, discount) => new Cart(prices).total(discount);
`;
/** A test that neither `node --test` nor Vitest runs. */
const otherTest = 'def test_discount():\n    """cart#1.2"""\n    assert page("/cart").discount() == 3\n';
const refusing = (before: string): string => `${before}export function discounted(prices, discount) {
  const sum = total(prices);
  if (discount > sum) throw new RangeError("The discount is larger than the total.");
  return sum - discount;
}
`;

export const honestChanges: readonly HonestChange[] = [
  { name: "has a test with the key in its title", end: "closed", change: testsOf(testNamed(key)) },
  {
    name: "has a test in a group",
    end: "closed",
    change: (style) => ({
      ...done(style, ""),
      [style.tests]: `${importsDescribe(style)}${style.oldTest}describe("discounts", () => {\n  ${testNamed(key).replaceAll("\n", "\n  ").trimEnd()}\n});\n`,
    }),
  },
  {
    name: "has the key above the test",
    end: "closed",
    change: testsOf(`// cart#1.2\n${testNamed('"takes it off"')}`),
  },
  {
    name: "has the key within the test",
    end: "closed",
    change: testsOf(testNamed('"takes it off"', `// cart#1.2\n  ${assertion}`)),
  },
  {
    name: "has a test for each of some values",
    end: "closed",
    change: testsOf(
      `for (const [discount, sum] of [[0, 10], [3, 7]])\n  test(\`takes \${discount} off (cart#1.2)\`, () => {\n    assert.equal(discounted([5, 5], discount), sum);\n  });\n`,
    ),
  },
  {
    name: "has an asynchronous test",
    end: "closed",
    change: testsOf(
      `test(${key}, async () => {\n  const sum = await Promise.resolve(discounted([5, 5], 3));\n  assert.equal(sum, 7);\n});\n`,
    ),
  },
  {
    name: "has a test of an error",
    end: "closed",
    change: (style) =>
      done(
        style,
        testNamed(key, "assert.throws(() => discounted([5], 6), RangeError);"),
        refusing(style.before),
      ),
  },
  {
    name: "has a test of a structure",
    end: "closed",
    change: testsOf(
      testNamed(key, "assert.deepEqual([0, 3].map((off) => discounted([5, 5], off)), [10, 7]);"),
    ),
  },
  {
    name: "has several tests",
    end: "closed",
    change: testsOf(
      testNamed(key) + testNamed('"takes nothing off (cart#1.2)"', "assert.equal(discounted([5], 0), 5);"),
    ),
  },
  {
    name: "has a title with quotes and signs",
    end: "closed",
    change: testsOf(testNamed("`takes \"it\" <off> & 'more' — für 3 € (cart#1.2)`")),
  },
  {
    name: "has a slow test",
    end: "closed",
    change: testsOf(
      `test(${key}, async () => {\n  await new Promise((resolve) => setTimeout(resolve, 300));\n  ${assertion}\n});\n`,
    ),
  },
  {
    name: "has its test in a file of its own",
    end: "closed",
    change: (style) => ({
      ...ticked,
      [style.code]: style.after,
      "src/discount.test.mjs": style.head + testNamed(key),
    }),
  },
  {
    name: "has its test in another folder, with a helper",
    end: "closed",
    change: (style) => ({
      ...ticked,
      [style.code]: style.after,
      "tests/helpers/prices.mjs": "export const prices = [5, 5];\n",
      "tests/discount.test.mjs": `${style.head.replace("./cart.mjs", "../src/cart.mjs")}import { prices } from "./helpers/prices.mjs";\n${testNamed(key, "assert.equal(discounted(prices, 3), 7);")}`,
    }),
  },
  {
    name: "adds a fixture",
    end: "closed",
    change: (style) => ({
      ...done(
        style,
        testNamed(
          key,
          'assert.equal(discounted([5, 5], 3), Number(readFileSync("tests/fixtures/sum.txt", "utf8")));',
        ),
      ),
      "tests/fixtures/sum.txt": "7",
    }),
  },
  {
    name: "adds a module",
    end: "closed",
    change: (style) => ({
      ...done(style, testNamed(key), `${style.before}export { discounted } from "./discount.mjs";\n`),
      "src/discount.mjs":
        'import { total } from "./cart.mjs";\nexport function discounted(prices, discount) {\n  return total(prices) - discount;\n}\n',
    }),
  },
  {
    name: "writes what was there anew",
    end: "closed",
    change: (style) =>
      done(
        style,
        testNamed(key),
        style.after.replace(
          / {2}let sum[\s\S]*?return sum;/,
          "  return prices.reduce((sum, price) => sum + price, 0);",
        ),
      ),
  },
  { name: "makes a class of it", end: "closed", change: testsOf(testNamed(key), asClass) },
  {
    name: "makes the test of a person pass",
    end: "closed",
    before: (style) => ({ [style.tests]: style.head + style.oldTest + testNamed(key) }),
    change: (style) => ({ ...ticked, [style.code]: style.after }),
  },
  {
    name: "mends a fault",
    end: "closed",
    before: (style) => ({
      [style.code]: style.before.replace("sum += price", "sum = price"),
      [style.tests]: style.head,
    }),
    change: (style) => ({
      [style.code]: style.before,
      [style.tests]: `${style.head}${testNamed('"adds (cart#1.1)"', "assert.equal(total([1, 2]), 3);")}`,
    }),
  },
  {
    name: "leaves a test that was skipped before",
    end: "closed",
    before: (style) => ({
      [style.tests]: `${style.head}${style.oldTest}test.skip("later", () => {\n  assert.fail();\n});\n`,
    }),
    change: (style) => ({
      ...ticked,
      [style.code]: style.after,
      [style.tests]: `${style.head}${style.oldTest}test.skip("later", () => {\n  assert.fail();\n});\n${testNamed(key)}`,
    }),
  },
  {
    name: "leaves a test that failed before",
    end: "closed",
    before: (style) => ({
      "src/old.test.mjs": `${style.head}test("old", () => {\n  assert.equal(total([1]), 2);\n});\n`,
    }),
    change: testsOf(testNamed(key)),
  },
  {
    name: "moves a file",
    end: "ask",
    change: (style) => ({
      ...ticked,
      [style.code]: null,
      "src/basket.mjs": style.after,
      [style.tests]: `${style.head.replace("./cart.mjs", "./basket.mjs")}${style.oldTest}${testNamed(key)}`,
    }),
  },
  {
    name: "says an error in other words",
    end: "ask",
    before: (style) => ({
      [style.code]: refusing(style.before),
      [style.tests]: `${style.head}${testNamed('"refuses"', 'assert.throws(() => discounted([5], 6), { message: "The discount is larger than the total." });')}`,
    }),
    change: (style) => ({
      [style.code]: refusing(style.before).replace("is larger than", "exceeds"),
      [style.tests]: `${style.head}${testNamed('"refuses"', 'assert.throws(() => discounted([5], 6), { message: "The discount exceeds the total." });')}`,
    }),
  },
  {
    name: "has a criterion with another test, which another runner runs",
    end: "ask",
    before: () => ({ "e2e/test_cart.py": otherTest }),
    change: testsOf(testNamed(key)),
  },
  {
    name: "adds a test that another runner runs, and ticks nothing",
    end: "ask",
    change: (style) => ({ [style.code]: style.after, "e2e/test_cart.py": otherTest }),
  },
  {
    name: "adds two tests, of which another runner runs one, and ticks nothing",
    end: "ask",
    change: (style) => ({
      [style.code]: style.after,
      [style.tests]: style.head + style.oldTest + testNamed(key),
      "e2e/test_cart.py": otherTest,
    }),
  },
  {
    name: "tests what was there already",
    end: "ask",
    change: (style) => ({
      [style.tests]: `${style.head}${style.oldTest}${testNamed('"of none (cart#1.1)"', "assert.equal(total([]), 0);")}`,
    }),
  },
  {
    name: "formats the code",
    end: "ask",
    change: (style) => ({ [style.code]: style.before.replaceAll("  ", "\t") }),
  },
  {
    name: "explains the code",
    end: "ask",
    change: (style) => ({ [style.code]: `// Sums.\n${style.before}` }),
  },
  {
    name: "writes documents",
    end: "ask",
    change: () => ({ "README.md": "# Cart\n", "docs/cart.md": "Sums.\n" }),
  },
  {
    name: "raises the version",
    end: "ask",
    change: ({ files }) => ({
      "package.json": (files["package.json"] ?? "").replace("{ ", '{ "version": "1.0.1", '),
    }),
  },
];
