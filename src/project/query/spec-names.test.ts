import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";
import { createSpecNames } from "./spec-names.ts";

const requirements =
  "# Requirements\n\n## Requirement 1: Pay\n\n1. WHEN a, THE SYSTEM SHALL b.\n\n## Requirement 2: Refund\n\nText.\n";

test("each spec has a name of its feature and number, which leads back to its id", async () => {
  await using repository = await createTemporaryRepository({
    ".kiro/specs/checkout/requirements.md": requirements,
    ".kiro/specs/checkout/design.md": "# Design\n\n## Overview\n\nText.\n",
    ".kiro/specs/checkout/tasks.md": "# Tasks\n\n- [ ] 1. Build\n- [ ] 1.2 Test\n",
    "web/.kiro/specs/cart/requirements.md": requirements,
    "api/.kiro/specs/cart/requirements.md": requirements,
    "specs/001-gift/spec.md": "# Gift\n\n- **FR-001**: It MUST a.\n",
    "specs/001-gift/tasks.md": "# Tasks\n\n- [ ] T001 Build\n",
    "openspec/specs/auth/spec.md": "# Auth\n\n## Requirements\n\n### Requirement: Log in\n\nIt SHALL.\n",
    "openspec/changes/add-x/tasks.md": "- [ ] 1.1 One\n",
    "CLAUDE.md": "## Testing\n\nText.\n",
  });
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  const { nameOf, resolve } = createSpecNames(project.specs);
  const blocks = [...project.specs.all()];
  const names = blocks.map(nameOf);
  expect(names.sort()).toEqual([
    "001-gift#FR-001",
    "001-gift#T001",
    "CLAUDE#testing",
    "add-x#task-1.1",
    "api/cart#1",
    "api/cart#2",
    "auth#log-in",
    "checkout#1",
    "checkout#2",
    "checkout#design-overview",
    "checkout#task-1",
    "checkout#task-1.2",
    "web/cart#1",
    "web/cart#2",
  ]);
  for (const block of blocks) expect(resolve(nameOf(block).toUpperCase())).toEqual([block.id]);
  expect(resolve("checkout#1.1")).toEqual(["fw_a-checkout-requirements-req1"]);
  expect(resolve("cart#1")).toHaveLength(2);
  expect(resolve("checkout#9")).toEqual([]);
  expect(resolve("nothing#1")).toEqual([]);
  await project.close();
});
