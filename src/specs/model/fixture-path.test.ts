import { expect, test } from "vitest";
import { openProject } from "../../project/open-project.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { isFixturePath } from "./mentions.ts";

test.each([
  ["tests/fixtures/a/.kiro/specs/x/tasks.md", "kiro", true],
  ["src/__fixtures__/CLAUDE.md", "claude", true],
  ["pkg/testdata/openspec/specs/a/spec.md", "openspec", true],
  ["tests/e2e/project/.kiro/specs/x/tasks.md", "kiro", true],
  ["test/examples/specs/001-a/spec.md", "speckit", true],
  ["tests/CLAUDE.md", "claude", false],
  ["examples/shop/.kiro/specs/x/tasks.md", "kiro", false],
  [".kiro/specs/fixtures.md/tasks.md", "kiro", false],
  ["specs/001-fixtures/spec.md", "speckit", false],
])("%s of %s: %s", (path, adapter, expected) => {
  expect(isFixturePath(path, adapter)).toBe(expected);
});

test("fixtures of tests are no specs unless the configuration names them", async () => {
  const fixture = "tests/fixtures/.kiro/specs/x/tasks.md";
  await using repository = await createTemporaryRepository({
    [fixture]: "- [ ] 1. A\n",
    ".kiro/specs/x/tasks.md": "- [ ] 1. A\n",
  });
  const pathsWith = async (specs: object): Promise<readonly string[]> => {
    const project = await openProject({ root: repository.root, indexFile: ":memory:", config: { specs } });
    try {
      return [...project.specs.all()].map(({ path }) => path);
    } finally {
      await project.close();
    }
  };
  expect(await pathsWith({})).toEqual([".kiro/specs/x/tasks.md"]);
  expect(await pathsWith({ include: ["**"] })).toEqual([".kiro/specs/x/tasks.md", fixture]);
  expect(await pathsWith({ custom: [{ include: "tests/fixtures/*.json" }] })).toHaveLength(1);
});
