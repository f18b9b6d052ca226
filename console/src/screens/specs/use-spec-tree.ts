import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { KitClient, SpecBlock } from "../../../../src/client/index.ts";
import { asked, useClient } from "../../api/use-server.ts";
import { frameworkNamesWith } from "./spec-names.ts";
import {
  type Children,
  keyOf,
  openAtFirst,
  rootKey,
  type TreeNode,
  type TreeRow,
  toRows,
  typesOf,
} from "./tree-rows.ts";

/** The part of the tree that an address names. */
export interface TreeScope {
  readonly framework?: SpecBlock["framework"] | undefined;
  readonly feature?: string | undefined;
  readonly type?: SpecBlock["spec_type"] | undefined;
}

export interface SpecTree {
  readonly rows: readonly TreeRow[];
  /** The error of loading the first level. */
  readonly error: unknown;
  readonly isEmpty: boolean;
  toggle(key: string): void;
  /** Loads the next page of the children of a node, or the one that failed. */
  load(parent: string): void;
  reload(): void;
}

interface TreeState {
  readonly known: ReadonlyMap<string, Children>;
  readonly open: ReadonlySet<string>;
}

const pageSize = 200;
const empty: TreeState = { known: new Map(), open: new Set() };
const nothing: Children = { nodes: [], total: 0, isLoaded: false };

/** How long the tree's state is kept for a user who comes back, in ms. */
const rememberedMs = 120_000;
let remembered:
  | { readonly client: KitClient; readonly scope: string; readonly state: TreeState; readonly at: number }
  | undefined;

/** The tree of specs, whose levels are loaded page by page as they come into view. */
export function useSpecTree(scope: TreeScope): SpecTree {
  const client = useClient();
  const { framework, feature, type } = scope;
  const name = JSON.stringify([framework, feature, type]);
  const [state, setState] = useState<TreeState>(() => recall(client, name));
  const loading = useRef(new Set<string>());
  const latest = useRef(state);
  latest.current = state;

  const load = useCallback(
    (parent: string) => {
      if (loading.current.has(parent)) return;
      loading.current.add(parent);
      const before = latest.current.known.get(parent) ?? nothing;
      const node = parent === rootKey ? undefined : nodeOf(latest.current.known, parent);
      if (before.error !== undefined)
        setState((now) => withChildren(now, parent, { ...before, error: undefined }));
      asked(client, () =>
        readChildren(client, node, { scope: { framework, feature, type }, cursor: before.cursor }),
      )
        .then(
          (page) =>
            setState((now) => {
              const nodes = [...before.nodes, ...page.nodes];
              const next = withChildren(now, parent, { ...page, nodes, isLoaded: true });
              // A single branch is opened.
              const [only] = nodes;
              const opens =
                nodes.length === 1 && only !== undefined && parent !== keyOf(only) && only.kind !== "block";
              if (parent === rootKey && before.nodes.length === 0 && !opens)
                return { ...next, open: new Set([...next.open, ...openAtFirst(nodes)]) };
              return opens ? { ...next, open: new Set([...next.open, keyOf(only)]) } : next;
            }),
          (error: unknown) => setState((now) => withChildren(now, parent, { ...before, error })),
        )
        .finally(() => loading.current.delete(parent));
    },
    [client, framework, feature, type],
  );
  const reload = useCallback(() => {
    loading.current.clear();
    setState(empty);
    latest.current = empty;
    load(rootKey);
  }, [load]);
  useEffect(() => {
    const known = recall(client, name);
    setState(known);
    latest.current = known;
    loading.current.clear();
    if (known === empty) load(rootKey);
    return () => {
      remembered = { client, scope: name, state: latest.current, at: Date.now() };
    };
  }, [client, name, load]);

  const toggle = useCallback((key: string) => {
    setState((now) => {
      const open = new Set(now.open);
      if (!open.delete(key)) open.add(key);
      return { ...now, open };
    });
  }, []);
  const rows = useMemo(() => toRows(state.known, state.open), [state]);
  const root = state.known.get(rootKey);
  return {
    rows,
    error: root?.error,
    isEmpty: root?.isLoaded === true && root.nodes.length === 0,
    toggle,
    load,
    reload,
  };
}

function recall(client: KitClient, scope: string): TreeState {
  const isFresh =
    remembered?.client === client && remembered.scope === scope && Date.now() - remembered.at < rememberedMs;
  return isFresh && remembered !== undefined && remembered.state.known.size > 0 ? remembered.state : empty;
}

function withChildren(state: TreeState, parent: string, children: Children): TreeState {
  return { ...state, known: new Map(state.known).set(parent, children) };
}

function nodeOf(known: ReadonlyMap<string, Children>, key: string): TreeNode | undefined {
  for (const { nodes } of known.values()) {
    const found = nodes.find((node) => keyOf(node) === key);
    if (found !== undefined) return found;
  }
  return undefined;
}

type ChildPage = Pick<Children, "nodes" | "total" | "cursor">;

async function readChildren(
  client: KitClient,
  node: TreeNode | undefined,
  { scope, cursor }: { readonly scope: TreeScope; readonly cursor: string | undefined },
): Promise<ChildPage> {
  const readFeatures = async (query: {
    readonly framework?: SpecBlock["framework"] | undefined;
    readonly feature?: string | undefined;
  }) => {
    const page = await client.specs.features({ ...query, limit: pageSize, cursor });
    const nodes = page.features.map((feature): TreeNode => ({ kind: "feature", feature }));
    return { nodes, total: page.total_count, cursor: page.next_cursor };
  };
  const readBlocks = async (
    { framework, feature }: { readonly framework: SpecBlock["framework"]; readonly feature: string },
    spec_type?: SpecBlock["spec_type"],
  ) => {
    const page = await client.specs.outline({ framework, feature, spec_type, limit: pageSize, cursor });
    const nodes = page.blocks.map((block): TreeNode => ({ kind: "block", block }));
    return { nodes, total: page.total_count, cursor: page.next_cursor };
  };
  switch (node?.kind) {
    case undefined: {
      if (scope.feature !== undefined) return await readFeatures(scope);
      const { counts_by_framework, counts_by_tool } = await client.specs.features({ limit: 1 });
      const names = frameworkNamesWith(counts_by_tool);
      const nodes = Object.entries(counts_by_framework)
        .filter(([framework]) => scope.framework === undefined || scope.framework === framework)
        .map(
          ([framework, blocks]): TreeNode => ({
            kind: "framework",
            framework: framework as SpecBlock["framework"],
            label: names[framework as SpecBlock["framework"]],
            blocks,
          }),
        );
      const open = openAtFirst(nodes);
      // Specs before rules.
      const sorted = nodes.toSorted(
        (one, other) => Number(open.has(keyOf(other))) - Number(open.has(keyOf(one))),
      );
      return { nodes: sorted, total: sorted.length };
    }
    case "framework":
      return await readFeatures({ framework: node.framework });
    case "feature": {
      const types = typesOf(node.feature).filter(
        (one) => one.kind === "type" && (scope.type ?? one.type) === one.type,
      );
      return types.length > 1
        ? { nodes: types, total: types.length }
        : await readBlocks(node.feature, scope.type);
    }
    case "type":
      return await readBlocks(node.feature, node.type);
    case "block": {
      const { metadata } = await client.specs.get(node.block.id);
      const nodes = (metadata.ears_patterns ?? []).map(
        ({ number, text }, at): TreeNode => ({
          kind: "criterion",
          specId: node.block.id,
          number: number ?? String(at + 1),
          text,
        }),
      );
      return { nodes, total: nodes.length };
    }
    case "criterion":
      return { nodes: [], total: 0 };
  }
}
