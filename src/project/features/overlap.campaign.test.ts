import { afterEach, beforeEach, expect, test } from "vitest";
import { createTemporaryRepository, type TemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";
import { specOverlaps } from "./overlap.ts";
import type { OverlapOptions, OverlapReport } from "./overlap-sides.ts";

const requirement = (name: string, text: string): string =>
  `### Requirement: ${name}\nThe shop SHALL ${text}.\n\n#### Scenario: Usual\n- WHEN it is asked\n- THEN it SHALL ${text}\n\n`;
const current = (...requirements: readonly string[]): string =>
  `# Shipping\n\n## Purpose\nShip.\n\n## Requirements\n\n${requirements.join("")}`;
const delta = (word: string, ...requirements: readonly string[]): string =>
  `## ${word} Requirements\n\n${requirements.join("")}`;
const spec = "openspec/specs/shipping/spec.md";
const change = (name: string): string => `openspec/changes/${name}/specs/shipping/spec.md`;
const kiro = ".kiro/specs/cart/requirements.md";
const cart = (...texts: readonly string[]): string =>
  `# Requirements\n${texts.map((text, at) => `\n### Requirement ${at + 1}: Part\n\n#### Acceptance Criteria\n\n1. THE cart SHALL ${text}\n`).join("")}`;

let repository: TemporaryRepository;
let time = 1_000_000;
beforeEach(async () => {
  repository = await createTemporaryRepository({
    ".gitignore": ".kit/\n",
    [spec]: current(requirement("Free shipping", "ship free"), requirement("Returns", "take back")),
    [kiro]: cart("add", "remove", "count"),
  });
});
afterEach(() => repository[Symbol.asyncDispose]());

const commit = (message: string): Promise<string> => {
  time += 100;
  return repository.commit(message, time);
};
const checkOut = (...args: readonly string[]): Promise<string> =>
  repository.git("checkout", "--quiet", ...args);

async function overlaps(options: OverlapOptions = {}, root = repository.root): Promise<OverlapReport> {
  const project = await openProject({ root, indexFile: ":memory:" });
  try {
    return await specOverlaps(project, options);
  } finally {
    await project.close();
  }
}
/** `changes shipping / Free shipping: one modified, two modified (side)`. */
const linesOf = ({ overlaps }: OverlapReport): readonly string[] =>
  overlaps.map(({ kind, feature, title, parts }) => {
    const claims = parts.map(({ change, delta, branch }) =>
      [change, delta, branch === undefined ? "" : `(${branch})`].filter(Boolean).join(" "),
    );
    return `${kind} ${feature} / ${title}: ${claims.join(", ")}`;
  });

test("a requirement in two open changes overlaps, without Git and also if one renames it", async () => {
  await repository.write(change("express"), delta("MODIFIED", requirement("Free shipping", "ship fast")));
  await repository.write(change("cheaper"), delta("MODIFIED", requirement("Free shipping", "ship cheap")));
  await repository.write(change("archive/old"), delta("MODIFIED", requirement("Returns", "refuse")));
  const report = await overlaps();
  expect(linesOf(report)).toEqual(["changes shipping / Free shipping: cheaper modified, express modified"]);
  expect(report.overlaps[0]?.parts[0]).toEqual({
    change: "cheaper",
    delta: "modified",
    path: change("cheaper"),
    line: 3,
  });
  expect(report.notes).toEqual([
    "Not a Git repository. So kit compares only the open changes of this folder.",
  ]);
  await repository.write(
    change("cheaper"),
    "## RENAMED Requirements\n\n- FROM: `### Requirement: Free shipping`\n- TO: `### Requirement: Cheap shipping`\n",
  );
  expect(linesOf(await overlaps())).toEqual([
    "changes shipping / Free shipping: cheaper renamed, express modified",
  ]);
  await repository.write(change("cheaper"), delta("ADDED", requirement("Gifts", "wrap")));
  expect(linesOf(await overlaps())).toEqual([]);
});

test("changes of two branches overlap, and none is checked out", async () => {
  await repository.init();
  await commit("all");
  await checkOut("-b", "side");
  await repository.write(change("express"), delta("MODIFIED", requirement("Free shipping", "ship fast")));
  await commit("express");
  await checkOut("-b", "mine", "main");
  await repository.write(change("cheaper"), delta("REMOVED", requirement("free shipping", "ship cheap")));
  expect(linesOf(await overlaps())).toEqual([]);
  const found = await overlaps({ branches: ["si*"] });
  expect(linesOf(found)).toEqual([
    "changes shipping / free shipping: cheaper removed, express modified (side)",
  ]);
  expect(found).toMatchObject({ base: "main", branches: ["side"], notes: [] });
  expect(await repository.git("rev-parse", "--abbrev-ref", "HEAD")).toBe("mine");
});

test("a requirement that the base changes under an open change overlaps, unless the base has archived that change", async () => {
  await repository.init();
  await repository.write(change("express"), delta("MODIFIED", requirement("Free shipping", "ship fast")));
  await commit("all");
  await checkOut("-b", "mine");
  await repository.write("src/a.ts", "1\n");
  await commit("work");
  await checkOut("main");
  await repository.write(
    spec,
    current(requirement("Free shipping", "ship free"), requirement("Returns", "refuse")),
  );
  await commit("another requirement");
  await checkOut("mine");
  expect(linesOf(await overlaps())).toEqual([]);
  await checkOut("main");
  await repository.write(
    spec,
    current(requirement("Free shipping", "ship slowly"), requirement("Returns", "refuse")),
  );
  await commit("the same requirement");
  await checkOut("mine");
  const found = ["base shipping / Free shipping: express modified"];
  expect(linesOf(await overlaps())).toEqual(found);
  expect(linesOf(await overlaps({ base: "HEAD" }))).toEqual([]);
  await checkOut("main");
  await repository.git("rm", "--quiet", change("express"));
  await commit("archive it");
  await checkOut("mine");
  expect(linesOf(await overlaps())).toEqual([]);
});

test("a block of Kiro that two branches change in different words overlaps", async () => {
  await repository.init();
  await commit("all");
  for (const [branch, ...texts] of [
    ["one", "add fast", "remove", "count"],
    ["two", "add slowly", "remove", "count up"],
    ["three", "add", "remove at once", "count"],
    ["four", "add fast", "remove", "count"],
  ] as const) {
    await checkOut("-b", branch, "main");
    await repository.write(kiro, cart(...texts));
    await commit(branch);
  }
  await checkOut("-b", "stacked", "two");
  await repository.write(kiro, cart("add slower", "remove", "count up"));
  await commit("stacked");
  await checkOut("main");
  expect(linesOf(await overlaps({ branches: ["one", "three"] }))).toEqual([]);
  expect(linesOf(await overlaps({ branches: ["one", "four"] })), "the same words").toEqual([]);
  expect(linesOf(await overlaps({ branches: ["two", "stacked"] })), "a branch of a branch").toEqual([]);
  expect(linesOf(await overlaps({ branches: ["one", "two", "three"] }))).toEqual([
    "branches cart / Requirement 1: Part: (one), (two)",
  ]);
  await checkOut("one");
  await repository.write(kiro, cart("add fast", "remove", "count down"));
  expect(linesOf(await overlaps({ branches: ["two"] })), "uncommitted edits count").toEqual([
    "branches cart / Requirement 1: Part: , (two)",
    "branches cart / Requirement 3: Part: , (two)",
  ]);
  await repository.git("stash", "--quiet");
  await checkOut("main");
  await repository.write(kiro, cart("add", "remove", "count in time"));
  await commit("main");
  await checkOut("two");
  expect(linesOf(await overlaps()), "the base is a branch, too").toEqual([
    "branches cart / Requirement 3: Part: , (main)",
  ]);
});

test("unknown revisions, and globs without a branch, are named; a shallow clone is told", async () => {
  await repository.init();
  await commit("all");
  await expect(overlaps({ base: "nowhere" })).rejects.toMatchObject({
    code: "invalid_request",
    message: 'Git knows no revision "nowhere" here.',
  });
  await expect(overlaps({ branches: ["origin/*"] })).rejects.toMatchObject({
    code: "invalid_request",
    message: 'No branch matches "origin/*".',
  });
  await expect(overlaps({ branches: ["--all"] })).rejects.toMatchObject({ code: "invalid_request" });
  await checkOut("-b", "side");
  await repository.write(kiro, cart("add", "remove", "count it"));
  await commit("side");
  await checkOut("main");
  await repository.write("src/a.ts", "1\n");
  await commit("main");
  await using clones = await createTemporaryRepository();
  const url = `file://${repository.root}`;
  await clones.git("clone", "--quiet", "--depth=1", "--no-single-branch", url, "copy");
  const { notes } = await overlaps({ branches: ["origin/side"] }, `${clones.root}/copy`);
  expect(notes).toEqual([
    "origin/side and origin/HEAD have no commit in common here. The clone is shallow: git fetch --unshallow.",
  ]);
});

test("a repository without main or master needs a base", async () => {
  await repository.init();
  await commit("all");
  await repository.git("branch", "--move", "main", "trunk");
  expect((await overlaps()).notes).toEqual([
    "There is no branch main or master to compare with: name one with --base.",
  ]);
  expect(await overlaps({ base: "trunk" })).toMatchObject({ base: "trunk", overlaps: [], notes: [] });
});
