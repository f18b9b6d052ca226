import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";
import { indexOf } from "../project-index.ts";
import { namedCriteria } from "./criteria-links.ts";
import { readKept } from "./kept-files.ts";

const files = {
  ".kiro/specs/cart/requirements.md":
    "# Requirements\n\n### Requirement 1: Add\n\n#### Acceptance Criteria\n\n1. THE SYSTEM SHALL add.\n2. THE SYSTEM SHALL remove.\n",
  "src/add.test.ts": '// cart#1.1\ntest("adds", () => {});\n\ntest("removes, cart#1.2", () => {});\n',
  "src/all.test.ts": 'test("does all", () => {}); // cart#1\n',
  "src/cart.ts": "// cart#1.1\n",
};

test("a file tells which criteria its tests name, and a criterion which tests name it", async () => {
  await using folder = await createTemporaryRepository(files);
  const project = await openProject({ root: folder.root, indexFile: ":memory:" });
  const spec_id = "fw_a-cart-requirements-req1";
  const added = {
    ...{ id: "cart#1.1", spec_id, path: "src/add.test.ts", line: 1 },
    ...{ evidence: "key", titles: ["adds"], quote: "// cart#1.1" },
  };
  const [first, second, ...others] = await namedCriteria(project, { files: ["src/add.test.ts"] });
  expect([first, second?.id, others]).toEqual([added, "cart#1.2", []]);
  expect(await namedCriteria(project, { criteria: ["cart#1.1"] })).toEqual([
    added,
    expect.objectContaining({ path: "src/all.test.ts", whole_requirement: true }),
  ]);
  expect(await namedCriteria(project, { files: ["src/cart.ts", "src/gone.test.ts"] })).toEqual([]);
  // The specs can change under a kept test.
  await folder.write(
    ".kiro/specs/cart/requirements.md",
    files[".kiro/specs/cart/requirements.md"].replace("2.", "3."),
  );
  await project.refresh();
  expect((await namedCriteria(project, { files: ["src/add.test.ts"] })).map(({ id }) => id)).toEqual([
    "cart#1.1",
  ]);
  await project.close();
});

test("only files that changed are read, also by the next process", async () => {
  await using folder = await createTemporaryRepository(files);
  const tests = ["src/add.test.ts", "src/all.test.ts"];
  // A stamp counts only for a file that is older than the tick of the clock.
  await sleep(50);
  const readIn = async (change?: () => Promise<void>) => {
    const project = await openProject({ root: folder.root });
    const index = indexOf(project);
    const read: string[] = [];
    const noting = (path: string) => {
      read.push(path);
      return index.readSource(path);
    };
    await change?.();
    const kept = await readKept({ ...index, readSource: noting }, tests);
    await project.close();
    return { read, kept };
  };
  expect((await readIn()).read).toEqual(tests);
  const { read, kept } = await readIn();
  expect(read).toEqual([]);
  expect(kept.files.get("src/add.test.ts")?.test?.titles.map(({ text }) => text)).toEqual([
    "adds",
    "removes, cart#1.2",
  ]);
  const rewrite = () => folder.write("src/all.test.ts", 'test("does all", () => {}); // cart#2\n');
  expect((await readIn(rewrite)).read).toEqual(["src/all.test.ts"]);
  await rm(join(folder.root, "src/all.test.ts"));
  const left = await readIn();
  expect([left.read, [...left.kept.files.keys()], left.kept.diagnostics]).toEqual([
    [],
    ["src/add.test.ts"],
    [],
  ]);
});
