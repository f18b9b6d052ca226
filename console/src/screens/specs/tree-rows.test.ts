import { expect, test } from "vitest";
import type { SpecFeature } from "../../../../src/client/index.ts";
import {
  type Children,
  findTyped,
  keyOf,
  labelOf,
  moveInTree,
  openAtFirst,
  rootKey,
  type TreeNode,
  toRows,
  typesOf,
} from "./tree-rows.ts";

const featureOf = (name: string): SpecFeature => ({
  framework: "fw_a",
  tool: "Kiro",
  feature: `.kiro/specs/${name}`,
  name,
  blocks: 3,
  counts_by_type: { task: 1, requirement: 2 },
});
const kiro: TreeNode = { kind: "framework", framework: "fw_a", label: "Kiro", blocks: 6 };
const auth: TreeNode = { kind: "feature", feature: featureOf("auth") };
const cart: TreeNode = { kind: "feature", feature: featureOf("cart") };
const all = (nodes: readonly TreeNode[], more: Partial<Children> = {}): Children => ({
  nodes,
  total: nodes.length,
  isLoaded: true,
  ...more,
});

const known = new Map<string, Children>([
  [rootKey, all([kiro])],
  [keyOf(kiro), all([auth, cart], { total: 5, cursor: "next" })],
  [keyOf(auth), all(typesOf(featureOf("auth")))],
]);
const open = new Set([kiro, auth].map(keyOf));
const rows = toRows(known, open);
const said = rows.map((row) =>
  row.kind === "node" ? `${row.level} ${labelOf(row.node)}` : `${row.level} more`,
);

test("an open node is followed by its children, and by a placeholder for those that are not loaded", () => {
  expect(said).toEqual(["1 Kiro", "2 auth", "3 Requirements", "3 Tasks", "2 cart", "2 more"]);
  expect(rows[4]).toMatchObject({ position: 2, size: 5, isOpen: false });
  const opened = toRows(known, new Set([...open, keyOf(cart)]));
  expect(opened[5]).toMatchObject({ kind: "more", parent: keyOf(cart), level: 3 });
  expect(toRows(new Map(), new Set())).toMatchObject([{ kind: "more", parent: rootKey }]);
});

test("frameworks of specs are open at first, and those of rules only if there are no others", () => {
  const rules: TreeNode = { kind: "framework", framework: "fw_c", label: "Claude Code", blocks: 2 };
  expect([...openAtFirst([rules, kiro])]).toEqual([keyOf(kiro)]);
  expect([...openAtFirst([rules])]).toEqual([keyOf(rules)]);
});

test("a criterion and a block without criteria cannot be opened", () => {
  const block = {
    id: "a",
    title: "A",
    spec_type: "task",
    lifecycle: "active",
    path: "a.md",
    line: 1,
  } as const;
  const nodes: readonly TreeNode[] = [
    { kind: "block", block: { ...block, criteria: 0 } },
    { kind: "block", block: { ...block, id: "b", criteria: 2 } },
    { kind: "criterion", specId: "b", number: "1.1", text: "WHEN" },
  ];
  const found = toRows(new Map([[rootKey, all(nodes)]]), new Set());
  expect(found.map((row) => row.kind === "node" && row.isOpen)).toEqual([undefined, false, undefined]);
});

test.each([
  [0, "ArrowDown", { go: 1 }],
  [0, "ArrowUp", { go: 0 }],
  [5, "ArrowDown", { go: 5 }],
  [3, "Home", { go: 0 }],
  [0, "End", { go: 5 }],
  [1, "PageDown", { go: 4 }],
  [1, "PageUp", { go: 0 }],
  [1, "ArrowRight", { go: 2 }],
  [4, "ArrowRight", { toggle: keyOf(cart) }],
  [1, "ArrowLeft", { toggle: keyOf(auth) }],
  [3, "ArrowLeft", { go: 1 }],
  [4, "ArrowLeft", { go: 0 }],
  [5, "ArrowLeft", { go: 0 }],
  [5, "ArrowRight", undefined],
  [4, " ", { toggle: keyOf(cart) }],
  [4, "Enter", { follow: cart }],
  [5, "Enter", undefined],
  [0, "Tab", undefined],
])("in row %i the key %s does what the ARIA tree pattern requires", (at, key, move) => {
  expect(moveInTree(rows, { at, key, page: 3 })).toEqual(move);
});

test("typed letters select the next row that begins with them, and wrap around the end", () => {
  expect(findTyped(rows, 0, "c")).toBe(4);
  expect(findTyped(rows, 4, "C")).toBe(4);
  expect(findTyped(rows, 1, "au")).toBe(1);
  expect(findTyped(rows, 4, "t")).toBe(3);
  expect(findTyped(rows, 0, "zebra")).toBeUndefined();
  expect(findTyped([], 0, "a")).toBeUndefined();
});

test("a hundred thousand open nodes become rows without delay", () => {
  const features = Array.from(
    { length: 100_000 },
    (_, at): TreeNode => ({ kind: "feature", feature: featureOf(`f${at}`) }),
  );
  const many = new Map([...known, [keyOf(kiro), all(features)]]);
  expect(toRows(many, new Set([keyOf(kiro)]))).toHaveLength(100_001);
});
