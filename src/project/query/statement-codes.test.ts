import { expect, onTestFinished, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";

const requirementsPath = ".kiro/specs/auth/requirements.md";
const requirements = `### US-1: Login
**Acceptance Criteria:**
- AC-2: WHEN a THEN b SHALL c
## Non-Functional Requirements
- **NFR-1**: The system SHALL be fast
`;
const tasks = `- [ ] 1. Write
  - _Requirements: AC-2, NFR-1_
- [ ] 2. Check
  - _Requirements: All_
- [ ] 3. Slip
  - _Requirements: NFR-8_
`;

test("codes link to the statements that they name, in both directions and after a change, and unknown codes are reported", async () => {
  await using repository = await createTemporaryRepository({
    [requirementsPath]: requirements,
    ".kiro/specs/auth/tasks.md": tasks,
  });
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  onTestFinished(() => project.close());
  const constraint = "fw_a-auth-requirements-non-functional-requirements";
  const relatedTo = (id: string) =>
    (project.specs.get(id)?.metadata.related_specs ?? []).map((each) => each.split("requirements-")[1]);
  const implementing = (id: string) =>
    project.specs
      .impact({ ids: [id], depth: 1 })
      .affected.filter(({ path }) => path[0]?.kind === "implements")
      .map(({ id: found }) => found.at(-1));
  expect(relatedTo("fw_a-auth-tasks-1")).toEqual(["req1", "non-functional-requirements"]);
  expect(relatedTo("fw_a-auth-tasks-2")).toEqual(["req1"]);
  expect(implementing(constraint)).toEqual(["1"]);
  expect(implementing("fw_a-auth-requirements-req1")).toEqual(["1", "2"]);
  const problems = () => project.specs.diagnostics().filter(({ rule }) => rule === "dangling-reference");
  expect(problems()).toMatchObject([{ id: "fw_a-auth-tasks-3", line: 6 }]);
  expect(problems()[0]?.message).toMatch(/^NFR-8 /);

  await repository.write(requirementsPath, requirements.replace("NFR-1", "NFR-8"));
  await project.refresh();
  expect(relatedTo("fw_a-auth-tasks-1")).toEqual(["req1"]);
  expect(implementing(constraint)).toEqual(["3"]);
  expect(problems()).toMatchObject([{ id: "fw_a-auth-tasks-1" }]);
});
