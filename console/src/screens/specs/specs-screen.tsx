import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, type ReactNode, useEffect, useMemo, useRef } from "react";
import type { SpecBlock, SpecPage, SpecQuery } from "../../../../src/client/index.ts";
import { asked, useClient } from "../../api/use-server.ts";
import { BarField, Chip, Choice } from "../../ui/chips.tsx";
import { Page } from "../../ui/page.tsx";
import { Scroll } from "../../ui/scroll.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { frameworkNames } from "./spec-names.ts";
import { SpecTabs } from "./spec-tabs.tsx";

/** A line of the tree: a file with its framework, or a block below it. */
type Row =
  | { readonly file: string; readonly framework: SpecBlock["framework"] }
  | { readonly spec: SpecBlock };

const pageSize = 200;

/** All blocks by file, in the order of their files; page by page as the reader scrolls. */
export function SpecsScreen(): ReactNode {
  const { q, framework, type } = useSearch({ from: "/console/specs" });
  const navigate = useNavigate();
  const client = useClient();
  const query = useMemo(
    () => ({ q, framework, spec_type: type, limit: pageSize }) as SpecQuery,
    [q, framework, type],
  );
  const pages = useInfiniteQuery({
    queryKey: ["specs", query],
    queryFn: ({ pageParam, signal }) =>
      asked(client, () => client.specs.list({ ...query, cursor: pageParam }, { signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: SpecPage) => page.next_cursor,
  });
  const first = pages.data?.pages[0];
  const set = (search: Record<string, string | undefined>): void => {
    void navigate({ to: "/console/specs", search: { q, framework, type, ...search } });
  };
  const counts = first?.counts_by_framework ?? {};
  return (
    <Page
      title="Specs"
      isFixed
      bar={
        <>
          <SpecTabs />
          <BarField label="Search specs" value={q ?? ""} onSubmit={(text) => set({ q: text || undefined })} />
          <Choice
            label="Framework"
            value={framework ?? ""}
            onChoose={(value) => set({ framework: value || undefined })}
            choices={[
              { value: "", label: "All" },
              ...Object.entries(frameworkNames)
                .filter(([value]) => value === framework || counts[value] !== undefined)
                .map(([value, label]) => ({ value, label, count: counts[value] ?? 0 })),
            ]}
          />
          <Choice
            label="Type"
            value={type ?? ""}
            onChoose={(value) => set({ type: value || undefined })}
            choices={["", "requirement", "design", "task", "constraint"].map((value) => ({
              value,
              label: value === "" ? "Any type" : value,
            }))}
          />
        </>
      }
    >
      {pages.isError ? <ErrorNotice error={pages.error} onRetry={() => void pages.refetch()} /> : null}
      {pages.isPending ? <Loading rows={12} /> : null}
      {first !== undefined && first.total_count === 0 ? (
        <Notice icon="specs" title={q || framework || type ? "No spec matches" : "No specs yet"}>
          Specs are read from .kiro/specs, .specify, openspec, *.spec.md and other files of this repository.
        </Notice>
      ) : null}
      {first !== undefined && first.total_count > 0 ? (
        <SpecRows
          rows={toRows(pages.data?.pages.flatMap(({ specs }) => specs) ?? [], q === undefined)}
          total={first.total_count}
          onEnd={() => {
            if (pages.hasNextPage && !pages.isFetchingNextPage) void pages.fetchNextPage();
          }}
        />
      ) : null}
    </Page>
  );
}

/** Blocks below their files; a search is ranked, so that its blocks stand alone. */
function toRows(specs: readonly SpecBlock[], isTree: boolean): readonly Row[] {
  const rows: Row[] = [];
  let file: string | undefined;
  for (const spec of specs) {
    if (isTree && spec.path !== file) rows.push({ file: spec.path, framework: spec.framework });
    file = spec.path;
    rows.push({ spec });
  }
  return rows;
}

interface SpecRowsProps {
  readonly rows: readonly Row[];
  readonly total: number;
  readonly onEnd: () => void;
}

const overscan = 16;

function SpecRows({ rows, total, onEnd }: SpecRowsProps): ReactNode {
  const place = useRef<HTMLElement>(null);
  const slots = useRef(0);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => place.current,
    estimateSize: () => 36,
    overscan,
    // Always as many: a row that comes into view takes the elements of one that left it. Removed elements, until they are
    // collected, slow down the browser's styles.
    rangeExtractor({ startIndex, endIndex, count }) {
      slots.current = Math.max(slots.current, endIndex - startIndex + 1 + 2 * overscan);
      const first = Math.max(0, Math.min(startIndex - overscan, count - slots.current));
      return Array.from({ length: Math.min(slots.current, count - first) }, (_, at) => first + at);
    },
    // React draws once in a frame, not within each event of the wheel.
    useFlushSync: false,
  });
  const visibleRows = list.getVirtualItems();
  const last = visibleRows.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= rows.length - 40) onEnd();
  }, [last, rows.length, onEnd]);
  return (
    <Scroll ref={place} label="Blocks" className="min-h-0 flex-1">
      <p className="px-4 py-2 text-faint text-xs tabular sm:px-6">{total.toLocaleString()} blocks</p>
      <div className="relative" style={{ height: list.getTotalSize() }}>
        {visibleRows.map(({ index, start, size }) => {
          const row = rows[index];
          return row === undefined ? null : (
            <div
              key={index % (slots.current || 1)}
              className="absolute inset-x-0 flex items-center px-4 [contain:strict] sm:px-6"
              style={{ top: start, height: size }}
            >
              {"file" in row ? <FileRow {...row} /> : <SpecRow spec={row.spec} />}
            </div>
          );
        })}
      </div>
    </Scroll>
  );
}

function FileRow({ file, framework }: Extract<Row, { file: string }>): ReactNode {
  return (
    <h2 className="flex min-w-0 flex-1 items-center gap-2 font-medium text-sm">
      <bdi className="truncate foreign" title={file}>
        {file}
      </bdi>
      <Chip>{frameworkNames[framework]}</Chip>
    </h2>
  );
}

/** Kept while the list scrolls: a link costs more than the rest of a row. */
const SpecRow = memo(function SpecRow({ spec }: { readonly spec: SpecBlock }): ReactNode {
  const { id, title, spec_type, lifecycle, metadata } = spec;
  return (
    <Link
      to="/console/specs/$id"
      params={{ id }}
      className="flex h-full min-w-0 flex-1 items-center gap-3 border-line border-b pl-4 text-sm hover:bg-raised"
    >
      <span className="w-24 shrink-0 text-faint text-xs">{spec_type}</span>
      <bdi className="min-w-0 flex-1 truncate foreign">{title}</bdi>
      {metadata.status === undefined ? null : (
        <Chip tone={metadata.status === "done" ? "good" : "plain"}>{metadata.status.replace("_", " ")}</Chip>
      )}
      {lifecycle === "active" ? null : <Chip tone="warn">{lifecycle}</Chip>}
    </Link>
  );
});
