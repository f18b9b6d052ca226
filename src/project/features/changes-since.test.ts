import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";
import { readChangesSince } from "./changes-since.ts";

const requirements = [1, 2, 3]
  .map((n) => `### Requirement ${n}: Part ${n}\n\n1. WHEN ${n}, THE SYSTEM SHALL do ${n}.\n`)
  .join("\n");
const tasks = (...done: string[]) =>
  ["1", "2", "3"]
    .map((n) => `- [${done.includes(n) ? "x" : " "}] ${n}. Build part ${n}\n  - _Requirements: ${n}.1_\n`)
    .join("");

test("two ticked boxes come first with their states, and what they link to after", async () => {
  await using repository = await createTemporaryRepository({
    ".kiro/specs/cart/requirements.md": `# Requirements\n\n${requirements}`,
    ".kiro/specs/cart/tasks.md": `# Tasks\n\n${tasks()}`,
  });
  await repository.init();
  await repository.commit("one", 1000);
  await repository.write(".kiro/specs/cart/tasks.md", `# Tasks\n\nMoved down.\n\n${tasks("1", "3")}`);
  const { root } = repository;
  const project = await openProject({ root, indexFile: ":memory:" });
  const { files, compared } = await readChangesSince(project, { since: "HEAD" });
  expect(compared.specs.map(({ id, change, what }) => [id, change, ...what])).toEqual([
    ["fw_a-cart-tasks-1", "modified", "status open → done"],
    ["fw_a-cart-tasks-3", "modified", "status open → done"],
  ]);
  const impact = project.specs.impact({ files: [...files] }, compared);
  expect(impact.affected.map(({ id, score }) => [id, score])).toEqual([
    ["fw_a-cart-tasks-1", 1],
    ["fw_a-cart-tasks-3", 1],
    ["fw_a-cart-requirements-req1", 0.8],
    ["fw_a-cart-requirements-req3", 0.8],
  ]);
  await project.close();
});

test("added, changed and removed blocks are told apart, and a new file counts as a whole", async () => {
  await using repository = await createTemporaryRepository({
    "pkg/CLAUDE.md": "## One\n\na\n\n## Two\n\nb\n\n## Three\n\nc\n",
  });
  await repository.init();
  await repository.commit("one", 1000);
  await repository.write("pkg/CLAUDE.md", "## Zero\n\nz\n\n## One\n\na\n\n## Three\n\nchanged\n");
  await repository.write("CLAUDE.md", "## New\n\nx\n");
  for (const folder of ["", "/pkg"]) {
    const project = await openProject({ root: `${repository.root}${folder}`, indexFile: ":memory:" });
    const { files, compared } = await readChangesSince(project, { since: "HEAD" });
    expect(compared.specs.map(({ id, change, what }) => [id, change, ...what])).toEqual([
      ["fw_c-zero", "added"],
      ["fw_c-three", "modified", "text"],
      ["fw_c-two", "removed"],
    ]);
    const { affected } = project.specs.impact({ files: [...files] }, compared);
    const changed = ["fw_c-three", "fw_c-zero"];
    expect(affected.map(({ id }) => id)).toEqual(folder === "" ? ["fw_c-new", ...changed] : changed);
    await project.close();
  }
});
