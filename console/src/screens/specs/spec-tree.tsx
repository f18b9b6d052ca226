import { Link, type LinkProps, useNavigate } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, memo, type ReactNode, useEffect, useId, useMemo, useRef, useState } from "react";
import type { CoveragePage } from "../../../../src/client/index.ts";
import { useServer } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Chip } from "../../ui/chips.tsx";
import { Icon } from "../../ui/icons.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";
import { findTyped, labelOf, moveInTree, type TreeNode, type TreeRow } from "./tree-rows.ts";
import { type TreeScope, useSpecTree } from "./use-spec-tree.ts";

const rowHeight = 34;
const overscan = 16;
/** Letters typed within this time belong to one search, in ms. */
const typingMs = 600;

/** Specs as a tree: framework, feature, kind, block, criterion. Each node has its own address. */
export function SpecTree({ scope }: { readonly scope: TreeScope }): ReactNode {
  const { rows, error, isEmpty, toggle, load, reload } = useSpecTree(scope);
  const coverage = useFeatureCoverage();
  const [active, setActive] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const typed = useRef({ text: "", at: 0 });
  const id = useId();
  const navigate = useNavigate();
  const slots = useRef(0);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan,
    // The number of elements is constant: a row that comes into view reuses the elements of one that left it. Removed elements slow down the
    // browser's styles until they are collected.
    rangeExtractor({ startIndex, endIndex, count }) {
      slots.current = Math.max(slots.current, endIndex - startIndex + 1 + 2 * overscan);
      const first = Math.max(0, Math.min(startIndex - overscan, count - slots.current));
      return Array.from({ length: Math.min(slots.current, count - first) }, (_, at) => first + at);
    },
    // So that React renders once per frame, not for each wheel event.
    useFlushSync: false,
  });
  const drawn = list.getVirtualItems();
  const missing = drawn.flatMap(({ index }) => {
    const row = rows[index];
    return row?.kind === "more" && row.error === undefined ? [row.parent] : [];
  });
  const missingKeys = missing.join("\n");
  useEffect(() => {
    if (missing.length > 0) for (const parent of missingKeys.split("\n")) load(parent);
  }, [missingKeys, missing.length, load]);

  if (error !== undefined) return <ErrorNotice error={error} onRetry={reload} />;
  if (isEmpty)
    return (
      <Notice icon="specs" title={scope.feature === undefined ? "No specs yet" : "There is no such feature"}>
        Specs are read from .kiro/specs, .specify, openspec, *.spec.md and other files of this repository.
      </Notice>
    );
  if (rows.every(({ kind }) => kind === "more")) return <Loading rows={12} />;

  const go = (index: number): void => {
    setActive(index);
    list.scrollToIndex(index);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? rowHeight) / rowHeight) - 1);
    const move = moveInTree(rows, { at: Math.min(active, rows.length - 1), key: event.key, page });
    if (move === undefined) {
      if (event.key.length !== 1) return;
      const text = event.timeStamp - typed.current.at < typingMs ? typed.current.text + event.key : event.key;
      typed.current = { text, at: event.timeStamp };
      const found = findTyped(rows, active, text);
      if (found !== undefined) go(found);
    } else if ("go" in move) go(move.go);
    else if ("toggle" in move) toggle(move.toggle);
    else void navigate(addressOf(move.follow));
    event.preventDefault();
  };
  return (
    <div
      ref={box}
      role="tree"
      aria-label="Specs"
      aria-activedescendant={`${id}-${active}`}
      tabIndex={0}
      onKeyDown={onKeyDown}
      className="group min-h-0 flex-1 overflow-y-auto outline-offset-[-2px]"
    >
      <div role="none" className="relative" style={{ height: list.getTotalSize() }}>
        {drawn.map(({ index, start, size }) => {
          const row = rows[index];
          return row === undefined ? null : (
            <div
              key={index % (slots.current || 1)}
              role="none"
              className="absolute inset-x-0 [contain:strict]"
              style={{ top: start, height: size }}
            >
              <Row
                row={row}
                coverage={coverage}
                id={`${id}-${index}`}
                isActive={index === active}
                onToggle={toggle}
                onRetry={load}
                onPick={() => setActive(index)}
              />
            </div>
          );
        })}
      </div>
    </div>
  );
}

interface RowProps {
  readonly row: TreeRow;
  readonly coverage: CoverageByFeature;
  readonly id: string;
  readonly isActive: boolean;
  readonly onToggle: (key: string) => void;
  readonly onRetry: (parent: string) => void;
  readonly onPick: () => void;
}

/** Memoized while the list scrolls: a link costs more than the rest of a row. */
const Row = memo(
  function Row({ row, coverage, id, isActive, onToggle, onRetry, onPick }: RowProps): ReactNode {
    const indent = { paddingLeft: `${row.level * 18 - 6}px` };
    if (row.kind === "more")
      return (
        <div
          id={id}
          role="treeitem"
          aria-level={row.level}
          aria-selected={isActive}
          tabIndex={-1}
          style={indent}
          className="flex h-full items-center gap-2 pr-4 text-faint text-sm"
        >
          {row.error === undefined ? (
            "Loading…"
          ) : (
            <>
              <span className="min-w-0 truncate text-bad">
                {row.error instanceof Error ? row.error.message : "This did not work"}
              </span>
              <Button variant="quiet" icon="retry" tabIndex={-1} onClick={() => onRetry(row.parent)}>
                Try again
              </Button>
            </>
          )}
        </div>
      );
    const { node, isOpen, level, position, size, key } = row;
    return (
      // biome-ignore lint/a11y/useKeyWithClickEvents: the tree handles the keys of all of its rows.
      <div
        id={id}
        role="treeitem"
        aria-level={level}
        aria-posinset={position}
        aria-setsize={size}
        aria-expanded={isOpen}
        aria-selected={isActive}
        tabIndex={-1}
        style={indent}
        onClick={() => {
          onPick();
          if (isOpen !== undefined && node.kind !== "block") onToggle(key);
        }}
        className={`flex h-full min-w-0 items-center gap-2 border-line border-b pr-4 text-sm hover:bg-raised ${
          isActive
            ? "bg-raised group-focus-visible:outline-2 group-focus-visible:outline-accent group-focus-visible:-outline-offset-2"
            : ""
        } ${isOpen === undefined || node.kind === "block" ? "" : "cursor-pointer"}`}
      >
        <Chevron isOpen={isOpen} onToggle={() => onToggle(key)} />
        <Name node={node} coverage={coverage} />
      </div>
    );
  },
  (before, after) =>
    before.row === after.row &&
    before.coverage === after.coverage &&
    before.isActive === after.isActive &&
    before.id === after.id,
);

/** Opens a node by mouse; the tree handles the keyboard. */
function Chevron({
  isOpen,
  onToggle,
}: {
  readonly isOpen: boolean | undefined;
  readonly onToggle: () => void;
}): ReactNode {
  if (isOpen === undefined) return <span className="w-5 shrink-0" />;
  return (
    <span
      aria-hidden="true"
      onClick={(event) => {
        event.stopPropagation();
        onToggle();
      }}
      className="grid size-5 shrink-0 cursor-pointer place-items-center rounded text-faint hover:text-ink"
    >
      <Icon name={isOpen ? "down" : "chevron"} size={14} />
    </span>
  );
}

/** Returns the screen that shows a node. */
function addressOf(node: TreeNode): LinkProps {
  switch (node.kind) {
    case "framework":
      return { to: "/console/specs", search: { framework: node.framework } };
    case "feature":
      return {
        to: "/console/specs",
        search: { framework: node.feature.framework, feature: node.feature.feature },
      };
    case "type": {
      const { framework, feature } = node.feature;
      return { to: "/console/specs", search: { framework, feature, type: node.type } };
    }
    case "block":
      return { to: "/console/specs/$id", params: { id: node.block.id } };
    case "criterion":
      return { to: "/console/specs/$id", params: { id: node.specId }, search: { criterion: node.number } };
  }
}

function Name({
  node,
  coverage,
}: {
  readonly node: TreeNode;
  readonly coverage: CoverageByFeature;
}): ReactNode {
  const name = (
    <Link
      {...addressOf(node)}
      tabIndex={-1}
      preload={false}
      onClick={(event) => event.stopPropagation()}
      className={`min-w-0 truncate hover:underline foreign ${node.kind === "block" || node.kind === "criterion" ? "" : "font-medium"}`}
    >
      <bdi>{visible(labelOf(node).slice(0, 400))}</bdi>
    </Link>
  );
  switch (node.kind) {
    case "framework":
      return (
        <>
          {name}
          <Count of={node.blocks} />
        </>
      );
    case "feature":
      return (
        <>
          {name}
          <bdi className="hidden min-w-0 truncate font-mono text-faint text-xs sm:inline foreign">
            {visible(node.feature.feature)}
          </bdi>
          <FeatureState covered={coverage.get(node.feature.feature)} blocks={node.feature.blocks} />
        </>
      );
    case "type":
      return (
        <>
          {name}
          <Count of={node.blocks} />
        </>
      );
    case "block": {
      const { status, lifecycle, criteria } = node.block;
      return (
        <>
          {name}
          {criteria === 0 ? null : (
            <span className="shrink-0 text-faint text-xs tabular">{`${criteria} ${criteria === 1 ? "criterion" : "criteria"}`}</span>
          )}
          <span className="ml-auto flex shrink-0 gap-1">
            {status === undefined ? null : (
              <Chip tone={status === "done" ? "good" : "plain"}>
                {visible(status.slice(0, 40)).replace("_", " ")}
              </Chip>
            )}
            {lifecycle === "active" ? null : <Chip tone="warn">{lifecycle}</Chip>}
          </span>
        </>
      );
    }
    case "criterion":
      return name;
  }
}

type CoverageByFeature = ReadonlyMap<string, CoveragePage["by_feature"][number]>;

/** How many criteria of each feature are tested and pass, by the folder or file of the feature. */
function useFeatureCoverage(): CoverageByFeature {
  const report = useServer({
    key: ["coverage", "by-feature"],
    ask: (client, signal) => client.specs.coverage({ limit: 1 }, { signal }),
  });
  const features = report.data?.by_feature;
  return useMemo(() => new Map((features ?? []).map((one) => [one.path, one])), [features]);
}

/** The criteria of a feature by their tests; the number of blocks where it has no criteria. */
function FeatureState({
  covered,
  blocks,
}: {
  readonly covered: CoveragePage["by_feature"][number] | undefined;
  readonly blocks: number;
}): ReactNode {
  if (covered === undefined || covered.criteria === 0) return <Count of={blocks} />;
  const { criteria, passing, failing } = covered;
  const tested = criteria - covered.uncovered;
  return (
    <span className="ml-auto flex shrink-0 items-center gap-2 text-faint text-xs tabular">
      <span className="hidden sm:inline">{`${criteria} ${criteria === 1 ? "criterion" : "criteria"}:`}</span>
      <span
        className={tested === criteria ? "text-soft" : "text-warn"}
      >{`${tested}/${criteria} tested`}</span>
      <span className={failing > 0 ? "text-bad" : passing === criteria ? "text-good" : "text-soft"}>
        {failing > 0 ? `${failing} fail` : `${passing} pass`}
      </span>
    </span>
  );
}

function Count({ of }: { readonly of: number }): ReactNode {
  return <span className="ml-auto shrink-0 text-faint text-xs tabular">{of.toLocaleString()}</span>;
}
