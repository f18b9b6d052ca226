import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { requirementsFile } from "../../../testing/requirements-file.ts";
import {
  createTemporaryRepository,
  type TemporaryRepository,
} from "../../../testing/temporary-repository.ts";
import type { CoderMode } from "./coder.ts";

export const tasksPath = ".kiro/specs/cart/tasks.md";

const requirements = requirementsFile("Totals", [
  "WHEN a cart is totalled THEN the system SHALL add the prices times their counts.",
  "WHEN a discount applies THEN the system SHALL take it off the total.",
]);

/** Two tasks with criteria that can be done at once, one without, and an optional one. */
export const tasks = `# Tasks

- [ ] 1. Totals
  - [ ] 1.1 (P) Add up
    - _Requirements: 1.1_
  - [ ] 1.2 (P) Discounts
    - _Requirements: 1.2_
- [ ] 2. Tidy up
- [ ]* 3. Measure
`;

/** A committed repository with the spec `cart`, and an agent of each mode in its files. The caller disposes of it. */
export async function specRepository(
  files: Readonly<Record<string, string>> = {},
  modes: readonly CoderMode[] = [],
): Promise<TemporaryRepository> {
  const coder = pathToFileURL(join(import.meta.dirname, "coder.ts")).href;
  const agents = modes.map((mode) => [
    `src/agents/${mode}.ts`,
    `import { coder } from ${JSON.stringify(coder)};\nexport default coder(${JSON.stringify(mode)});\n`,
  ]);
  const repository = await createTemporaryRepository({
    ".gitignore": ".kit\nnode_modules\n",
    // Few faults are enough for these tests, and keep them short.
    "kit.toml": "[specs.verify]\nfaults = 2\n",
    ".kiro/specs/cart/requirements.md": requirements,
    [tasksPath]: tasks,
    "src/cart.mjs": "// sum\n\nexport const version = 1;\n\n// discount\n\n// tidy\n",
    "src/version.test.mjs":
      'import assert from "node:assert/strict";\nimport { test } from "node:test";\nimport { version } from "./cart.mjs";\n\ntest("there is a version", () => assert.ok(version > 0));\n',
    ...Object.fromEntries(agents),
    ...files,
  });
  await repository.init();
  await repository.commit("Begin", 1_700_000_000);
  return repository;
}
