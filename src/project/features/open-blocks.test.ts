import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";
import { linkedBlocks, openBlocks } from "./open-blocks.ts";
import { TextLayer } from "./text-layer.ts";

test("the links of 300 blocks to a block of an open text read that text once", async () => {
  const spec = ".kiro/specs/cart/requirements.md";
  const plan = ".kiro/specs/cart/tasks.md";
  const requirements =
    "# Requirements\n\n### Requirement 1: Add\n\n#### Acceptance Criteria\n\n1. THE SYSTEM SHALL add.\n";
  const steps = Array.from(
    { length: 300 },
    (_, at) => `- [ ] ${at + 1}. Step ${at + 1}\n  - _Requirements: 1.1_\n`,
  );
  const tasks = `# Implementation Plan\n\n${steps.join("")}`;
  await using folder = await createTemporaryRepository({ [spec]: requirements, [plan]: tasks });
  const project = await openProject({ root: folder.root, indexFile: ":memory:" });
  const layer = new TextLayer(project, {});
  const opened = layer.open(plan, tasks);
  const target = layer.open(spec, requirements);
  let reads = 0;
  const { source } = target;
  Object.assign(target, {
    source: () => {
      reads += 1;
      return source();
    },
  });
  const blocks = openBlocks(opened);
  expect(blocks).toHaveLength(300);
  const linked = blocks.flatMap((block) => linkedBlocks(layer, opened, block));
  expect(linked).toHaveLength(300);
  expect(new Set(linked.map(({ path, line }) => `${path}:${line}`))).toEqual(new Set([`${spec}:3`]));
  expect(reads).toBe(1);
  // Another text of the file is another open text.
  const shifted = layer.open(spec, requirements.replace("###", "\n###"));
  expect(openBlocks(shifted)[0]?.draft.span.start_line).toBe(4);
  await project.close();
});
