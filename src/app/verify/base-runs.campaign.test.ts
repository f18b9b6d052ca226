import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openProject } from "../../project/open-project.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { verifySpecs } from "./verify-specs.ts";

const testOf = (sum: string): string =>
  `import { equal } from "node:assert/strict";\nimport { test } from "node:test";\nimport { add } from "./add.mjs";\ntest("adds", () => equal(add(1, 2), ${sum}));\n`;
const files = {
  ".gitignore": ".kit\nnode_modules\n",
  "add.mjs": "export const add = (one, other) => one + other;\n",
  "add.test.mjs": testOf("3"),
};

test("attempts from one commit share the run of its tests, until packages or the commit change", async () => {
  await using repository = await createTemporaryRepository(files);
  await repository.init();
  await repository.commit("Begin", 1_700_000_000);
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  const attempt = async (body: string): Promise<unknown> => {
    await repository.write("add.mjs", `export const add = (one, other) => ${body};\n`);
    const { end, runs } = await verifySpecs(project, {
      since: "HEAD",
      settings: { without_criteria: "suite" },
    });
    return [end, ...runs.filter(({ name }) => name === "base").map((run) => [run.runs, run.tests])];
  };
  // A test that is lost runs again on the base: it could fail now and then.
  expect(await attempt("one - other")).toEqual(["refused", [2, 1]]);
  expect(await attempt("one * other")).toEqual(["refused", [1, 1]]);
  expect(await attempt("other + one")).toEqual(["closed", [0, 1]]);
  await mkdir(join(repository.root, "node_modules"));
  expect(await attempt("one + other + 0")).toEqual(["closed", [1, 1]]);
  await repository.write("add.test.mjs", testOf("4"));
  await repository.commit("Expect another sum", 1_700_000_100);
  await repository.write("add.test.mjs", testOf("3"));
  expect(await attempt("one + other")).toEqual(["closed", [1, 1]]);
  await project.close();
});
