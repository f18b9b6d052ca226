import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";
import { readNamedSpecs } from "./named-specs.ts";

const requirements = (feature: string) =>
  [1, 2]
    .map(
      (n) =>
        `### Requirement ${n}: ${feature} ${n}\n\n1. WHEN ${n}, THE SYSTEM SHALL do ${n}.\n2. THE SYSTEM SHALL stop.\n`,
    )
    .join("\n");

test("a changed test leads to the specs whose criteria it names in comments and titles", async () => {
  await using repository = await createTemporaryRepository({
    ".kiro/specs/cart/requirements.md": `# Requirements\n\n${requirements("Cart")}`,
    ".kiro/specs/checkout/requirements.md": `# Requirements\n\n${requirements("Checkout")}`,
    "src/key.test.ts": '// checkout#1.2\ntest("stops", () => {});\n',
    "src/checkout/pay.test.ts": '// _Requirements: 2.1_\ntest("does 2", () => {});\n',
    "src/title.test.ts": 'test("does 1 (cart#1.1)", () => {});\n',
    "src/plain.test.ts": 'test("adds", () => {});\n',
    "src/code.ts": "// checkout#1.2\n",
  });
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  const affectedBy = async (...files: readonly string[]) => {
    const specsOfTests = await readNamedSpecs(project, files);
    const { affected, tests } = project.specs.impact(
      { files: [...files], depth: 1 },
      undefined,
      specsOfTests,
    );
    return { tests, affected: affected.map(({ id, path }) => [id, path[0]?.kind]) };
  };
  for (const [file, id] of [
    ["src/key.test.ts", "fw_a-checkout-requirements-req1"],
    ["src/checkout/pay.test.ts", "fw_a-checkout-requirements-req2"],
    ["src/title.test.ts", "fw_a-cart-requirements-req1"],
  ] as const)
    expect(await affectedBy(file)).toEqual({ tests: [file], affected: [[id, "covered_by"]] });
  // Only a test counts, as in coverage.
  expect(await affectedBy("src/plain.test.ts", "src/code.ts", "src/gone.test.ts")).toEqual({
    tests: ["src/plain.test.ts"],
    affected: [],
  });
  await project.close();
});
