import type { OutlineBlock, SpecBlock, SpecFeature } from "../../../../src/client/index.ts";
import { readPlain } from "../../ui/inline-markdown.ts";
import { typeNames } from "./spec-names.ts";

type Framework = SpecBlock["framework"];
type SpecType = SpecBlock["spec_type"];

/** A node in the tree of specs. */
export type TreeNode =
  | {
      readonly kind: "framework";
      readonly framework: Framework;
      readonly label: string;
      readonly blocks: number;
    }
  | { readonly kind: "feature"; readonly feature: SpecFeature }
  | { readonly kind: "type"; readonly feature: SpecFeature; readonly type: SpecType; readonly blocks: number }
  | { readonly kind: "block"; readonly block: OutlineBlock }
  | { readonly kind: "criterion"; readonly specId: string; readonly number: string; readonly text: string };

/** The known children of a node. */
export interface Children {
  readonly nodes: readonly TreeNode[];
  readonly total: number;
  readonly cursor?: string | undefined;
  /** Set once the first page is loaded. */
  readonly isLoaded: boolean;
  readonly isLoading?: boolean;
  readonly error?: unknown;
}

/** A row of the tree: a node, or a placeholder for children that are not loaded yet. */
export type TreeRow =
  | {
      readonly kind: "node";
      readonly key: string;
      readonly node: TreeNode;
      readonly level: number;
      readonly position: number;
      readonly size: number;
      /** Undefined for a node without children. */
      readonly isOpen: boolean | undefined;
    }
  | {
      readonly kind: "more";
      readonly key: string;
      readonly parent: string;
      readonly level: number;
      readonly error?: unknown;
    };

/** The key of the root, above the frameworks. */
export const rootKey = "";

export function keyOf(node: TreeNode): string {
  switch (node.kind) {
    case "framework":
      return `f ${node.framework}`;
    case "feature":
      return `e ${node.feature.framework} ${node.feature.feature}`;
    case "type":
      return `t ${node.type} ${node.feature.framework} ${node.feature.feature}`;
    case "block":
      return `b ${node.block.id}`;
    case "criterion":
      return `c ${node.number} ${node.specId}`;
  }
}

export function labelOf(node: TreeNode): string {
  switch (node.kind) {
    case "framework":
      return node.label;
    case "feature":
      return node.feature.name;
    case "type":
      return typeNames[node.type];
    case "block":
      return node.block.title;
    case "criterion":
      return `${node.number} ${readPlain(node.text)}`;
  }
}

/** Returns the frameworks that are open at first: their features are what one looks for. Files of rules have screens of their own. */
export function openAtFirst(nodes: readonly TreeNode[]): ReadonlySet<string> {
  const frameworks = nodes.filter((node) => node.kind === "framework");
  const specs = frameworks.filter(({ framework }) => framework !== "fw_b" && framework !== "fw_c");
  return new Set((specs.length === 0 ? frameworks : specs).map(keyOf));
}

const typeOrder: readonly SpecType[] = ["requirement", "design", "task", "constraint"];

/** The types of a feature's blocks, if it has several: requirements, design, tasks, rules. */
export function typesOf(feature: SpecFeature): readonly TreeNode[] {
  return typeOrder.flatMap((type): readonly TreeNode[] => {
    const blocks = feature.counts_by_type[type] ?? 0;
    return blocks === 0 ? [] : [{ kind: "type", feature, type, blocks }];
  });
}

function hasChildren(node: TreeNode): boolean {
  return node.kind !== "criterion" && !(node.kind === "block" && node.block.criteria === 0);
}

/** Returns the visible rows of the tree, top down: an open node is followed by its children. */
export function toRows(known: ReadonlyMap<string, Children>, open: ReadonlySet<string>): readonly TreeRow[] {
  const rows: TreeRow[] = [];
  const add = (parent: string, level: number): void => {
    const children = known.get(parent);
    for (const [at, node] of (children?.nodes ?? []).entries()) {
      const key = keyOf(node);
      const isOpen = hasChildren(node) ? open.has(key) : undefined;
      rows.push({ kind: "node", key, node, level, position: at + 1, size: children?.total ?? 0, isOpen });
      // Five levels at most.
      if (isOpen === true) add(key, level + 1);
    }
    if (
      children === undefined ||
      !children.isLoaded ||
      children.cursor !== undefined ||
      children.error !== undefined
    )
      rows.push({ kind: "more", key: `m ${parent}`, parent, level, error: children?.error });
  };
  add(rootKey, 1);
  return rows;
}

/** The effect of a key press in the tree. */
export type TreeMove =
  | { readonly go: number }
  | { readonly toggle: string }
  | { readonly follow: TreeNode }
  | undefined;

/** The keys of ARIA's tree pattern: arrows, Home, End, page keys; Enter follows a link, Space opens a node. */
export function moveInTree(
  rows: readonly TreeRow[],
  { at, key, page }: { readonly at: number; readonly key: string; readonly page: number },
): TreeMove {
  const row = rows[at];
  const clamp = (index: number): TreeMove => ({ go: Math.max(0, Math.min(rows.length - 1, index)) });
  switch (key) {
    case "ArrowDown":
      return clamp(at + 1);
    case "ArrowUp":
      return clamp(at - 1);
    case "Home":
      return clamp(0);
    case "End":
      return clamp(rows.length - 1);
    case "PageDown":
      return clamp(at + page);
    case "PageUp":
      return clamp(at - page);
    case "ArrowRight":
      if (row?.kind !== "node" || row.isOpen === undefined) return undefined;
      return row.isOpen ? clamp(at + 1) : { toggle: row.key };
    case "ArrowLeft": {
      if (row?.kind === "node" && row.isOpen === true) return { toggle: row.key };
      const above =
        row === undefined ? -1 : rows.findLastIndex((one, index) => index < at && one.level < row.level);
      return above === -1 ? undefined : { go: above };
    }
    case "Enter":
      return row?.kind === "node" ? { follow: row.node } : undefined;
    case " ":
      return row?.kind === "node" && row.isOpen !== undefined ? { toggle: row.key } : undefined;
    default:
      return undefined;
  }
}

/** Returns the next row after `at` whose name begins with the typed text, wrapping around the end. */
export function findTyped(rows: readonly TreeRow[], at: number, typed: string): number | undefined {
  const prefix = typed.toLowerCase();
  // A second letter can match the row that the first one found.
  const start = typed.length > 1 ? at : at + 1;
  for (let step = 0; step < rows.length; step += 1) {
    const index = (start + step) % rows.length;
    const row = rows[index];
    if (row?.kind === "node" && labelOf(row.node).toLowerCase().startsWith(prefix)) return index;
  }
  return undefined;
}
