import {
  createTemporaryRepository,
  type TemporaryRepository,
} from "../../../testing/temporary-repository.ts";

/**
 * A repository with one criterion, `cart#1.1`, and one task. Its work tree has the work: what `kit specs verify` closes. The caller
 * disposes of it.
 */
export async function changedCart(): Promise<TemporaryRepository> {
  const repository = await createTemporaryRepository({
    ".gitignore": ".kit\n",
    ".kiro/specs/cart/requirements.md":
      "# Requirements\n\n## Requirement 1: Totals\n\n#### Acceptance Criteria\n\n1. WHEN a discount applies THEN the system SHALL take it off.\n",
    ".kiro/specs/cart/tasks.md": "- [ ] 1. Discounts\n  - _Requirements: 1.1_\n",
    "cart.mjs": "export const total = (sum) => sum;\n",
    "cart.test.mjs":
      'import { test } from "node:test";\nimport { total } from "./cart.mjs";\ntest("adds", () => void total(1));\n',
  });
  await repository.init();
  await repository.commit("Begin", 1_700_000_000);
  await repository.write(
    "cart.mjs",
    "export function total(sum, discount = 0) {\n  return sum - discount;\n}\n",
  );
  await repository.write(
    "cart.test.mjs",
    `import assert from "node:assert/strict";
import { test } from "node:test";
import { total } from "./cart.mjs";
test("adds", () => void total(1));
test("takes it off (cart#1.1)", () => assert.equal(total(10, 3), 7));
`,
  );
  return repository;
}
