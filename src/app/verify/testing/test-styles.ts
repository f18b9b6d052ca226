import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { requirementsFile } from "../../../testing/requirements-file.ts";
import type { Files } from "./judge-change.ts";

/** How the tests of one runner are written. A body is JavaScript for `node --test` and Vitest, and Python for pytest. */
export interface TestStyle {
  readonly runner: "node --test" | "vitest run" | "python3 -m pytest";
  readonly code: string;
  readonly tests: string;
  /** The function `total`, which is there before. */
  readonly before: string;
  /** `before`, and the function `discounted`. */
  readonly after: string;
  /** `after`, and another name for `discounted` whose answer is wrong. */
  readonly wrong: string;
  readonly head: string;
  readonly oldTest: string;
  /** A test whose title names the criterion. */
  test(body: string, how?: "skip" | "todo"): string;
  readonly honest: string;
  readonly comment: string;
  readonly files: Readonly<Record<string, string>>;
  prepare?(root: string): Promise<void>;
}

export const requirements = requirementsFile("Totals", [
  "WHEN a cart is totalled THEN the system SHALL add the prices.",
  "WHEN a discount applies THEN the system SHALL take it off the total.",
]);
export const tasks = "- [ ] 1. Discounts\n  - _Requirements: 1.2_\n";
export const ticked: Files = { ".kiro/specs/cart/tasks.md": tasks.replace("[ ]", "[x]") };
const specs = {
  ".gitignore": ".kit\nnode_modules\n__pycache__\n",
  ".kiro/specs/cart/requirements.md": requirements,
  ".kiro/specs/cart/tasks.md": tasks,
};

const before = `export function total(prices) {
  let sum = 0;
  for (const price of prices) sum += price;
  return sum;
}
`;
const script = {
  code: "src/cart.mjs",
  tests: "src/cart.test.mjs",
  before,
  after: `${before}export function discounted(prices, discount) {\n  return total(prices) - discount;\n}\n`,
  wrong: `${before}export function discounted(prices, discount) {\n  return total(prices) + discount;\n}\n`,
  comment: "// cart#1.2\n",
  honest: "assert.equal(discounted([5, 5], 3), 7);",
  test: (body: string, how?: "skip" | "todo") =>
    `test${how === undefined ? "" : `.${how}`}("takes it off (cart#1.2)", async () => {\n  ${body}\n});\n`,
} as const;
const scriptHead = (runner: string): string => `import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "${runner}";
import * as cart from "./cart.mjs";
const { discounted, total } = cart;
`;
const scriptTest = 'test("adds", () => {\n  assert.equal(total([1, 2]), 3);\n});\n';

const python = "def total(prices):\n    return sum(prices)\n";

export const testStyles: readonly TestStyle[] = [
  {
    ...script,
    runner: "node --test",
    head: scriptHead("node:test"),
    oldTest: scriptTest,
    files: { ...specs, "package.json": '{ "type": "module" }\n' },
  },
  {
    ...script,
    runner: "vitest run",
    head: scriptHead("vitest"),
    oldTest: scriptTest,
    files: { ...specs, "package.json": '{ "type": "module", "devDependencies": { "vitest": "*" } }\n' },
    async prepare(root) {
      mkdirSync(join(root, "node_modules/.bin"), { recursive: true });
      const installed = join(import.meta.dirname, "../../../../node_modules");
      symlinkSync(join(installed, "vitest"), join(root, "node_modules/vitest"));
      symlinkSync(join(installed, "vitest/vitest.mjs"), join(root, "node_modules/.bin/vitest"));
    },
  },
  {
    runner: "python3 -m pytest",
    code: "cart.py",
    tests: "test_cart.py",
    before: python,
    after: `${python}\n\ndef discounted(prices, discount):\n    return total(prices) - discount\n`,
    wrong: `${python}\n\ndef discounted(prices, discount):\n    return total(prices) + discount\n`,
    head: "import os\nimport pytest\nimport cart\nfrom cart import *\n\n\n",
    oldTest: "def test_adds():\n    assert total([1, 2]) == 3\n\n\n",
    test: (body, how) =>
      `${how === undefined ? "" : `@pytest.mark.${how === "skip" ? "skip" : "xfail"}\n`}def test_discount():\n    """cart#1.2"""\n    ${body.replaceAll("\n", "\n    ")}\n\n\n`,
    comment: "# cart#1.2\n",
    honest: "assert discounted([5, 5], 3) == 7",
    files: specs,
  },
];
