import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect } from "react";
import type { KitClient } from "../../../src/client/index.ts";
import { asked, useClient } from "../api/use-server.ts";
import { askForMore, Rows } from "./rows.tsx";
import { ErrorNotice, Loading } from "./states.tsx";

interface Page {
  readonly next_cursor?: string | undefined;
  readonly total?: number | undefined;
}

/** A long list loads again by itself only while so many pages are loaded: each repetition asks for all of them. */
const repeatedPages = 2;
/** Filtered pages can be short: until so many rows are there, the next page is loaded at once. */
const fewRows = 30;

interface ListQuery<OnePage extends Page> {
  /** The key of the answer in the cache: its first word, and the filters. */
  readonly key: readonly unknown[];
  readonly ask: (
    client: KitClient,
    page: { readonly cursor: string | undefined; readonly signal: AbortSignal },
  ) => Promise<OnePage>;
  readonly everyMs?: number | undefined;
}

/** A list of the server, page by page. */
export function useList<OnePage extends Page>({ key, ask, everyMs }: ListQuery<OnePage>) {
  const client = useClient();
  return useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => asked(client, () => ask(client, { cursor: pageParam, signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: OnePage) => page.next_cursor,
    refetchInterval: ({ state }) =>
      everyMs === undefined || (state.data?.pages.length ?? 0) > repeatedPages ? false : everyMs,
  });
}

interface ListingProps<OnePage extends Page, Item> {
  readonly list: ReturnType<typeof useList<OnePage>>;
  readonly itemsIn: (page: OnePage) => readonly Item[];
  readonly keyOf: (item: Item) => string;
  readonly label: string;
  /** One and several of the items: `["run", "runs"]`. */
  readonly nouns: readonly [string, string];
  /** Shown in place of an empty list. */
  readonly empty: ReactNode;
  /** Beside the number of items. */
  readonly actions?: ReactNode;
  /** Renders one row. */
  readonly children: (item: Item) => ReactNode;
}

/** A list of any length with its number of items, which loads on as one scrolls. */
export function Listing<OnePage extends Page, Item>({
  list,
  itemsIn,
  keyOf,
  label,
  nouns,
  empty,
  actions,
  children,
}: ListingProps<OnePage, Item>): ReactNode {
  const items = list.data?.pages.flatMap(itemsIn);
  const count = items?.length ?? 0;
  const isShort = count < fewRows && list.hasNextPage && !list.isFetchingNextPage && !list.isError;
  const { fetchNextPage } = list;
  useEffect(() => {
    if (isShort) void fetchNextPage();
  }, [isShort, fetchNextPage]);
  if (items === undefined)
    return list.isError ? (
      <ErrorNotice error={list.error} onRetry={() => void list.refetch()} />
    ) : (
      <Loading rows={12} />
    );
  const total = list.data?.pages[0]?.total;
  const number =
    total === undefined ? `${count.toLocaleString()}${list.hasNextPage ? "+" : ""}` : total.toLocaleString();
  return (
    <>
      <div className="flex min-h-10 flex-wrap items-center gap-x-4 gap-y-1 border-line border-b px-4 py-1 sm:px-6">
        <p role="status" className="text-faint text-xs tabular">
          {`${number} ${number === "1" ? nouns[0] : nouns[1]}`}
        </p>
        <div className="ml-auto flex flex-wrap items-center gap-2">{actions}</div>
      </div>
      {items.length > 0 ? (
        <Rows items={items} keyOf={keyOf} label={label} onEnd={() => askForMore(list)}>
          {children}
        </Rows>
      ) : list.hasNextPage ? (
        <Loading rows={12} />
      ) : (
        empty
      )}
    </>
  );
}

/** Loads lists again after a change of many items. */
export function useReload(): (names: readonly string[]) => Promise<unknown> {
  const queries = useQueryClient();
  return (names) => Promise.all(names.map((name) => queries.invalidateQueries({ queryKey: [name] })));
}
