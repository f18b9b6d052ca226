import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { GuidelineList, GuidelineQuery } from "../../../../src/client/index.ts";
import { asked, useClient } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { BarField, Chip, Choice } from "../../ui/chips.tsx";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { GuidelineTabs } from "./guideline-tabs.tsx";
import { nameOf } from "./tool-names.ts";

/** All guidelines, by search and source. */
export function GuidelinesScreen(): ReactNode {
  const { q, source } = useSearch({ from: "/console/guidelines" });
  const navigate = useNavigate();
  const client = useClient();
  const query = { q, source, limit: 100 } as GuidelineQuery;
  const pages = useInfiniteQuery({
    queryKey: ["guidelines", query],
    queryFn: ({ pageParam, signal }) =>
      asked(client, () => client.guidelines.list({ ...query, cursor: pageParam }, { signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: GuidelineList) => page.next_cursor,
  });
  const set = (search: Record<string, string | undefined>): void => {
    void navigate({ to: "/console/guidelines", search: { q, source, ...search } });
  };
  const first = pages.data?.pages[0];
  return (
    <Page
      title="Guidelines"
      bar={
        <>
          <GuidelineTabs />
          <BarField
            label="Search guidelines"
            value={q ?? ""}
            onSubmit={(text) => set({ q: text || undefined })}
          />
          <Choice
            label="Source"
            value={source ?? ""}
            onChoose={(value) => set({ source: value || undefined })}
            choices={[
              { value: "", label: "All" },
              ...Object.entries(first?.counts_by_source ?? {}).map(([value, count]) => ({
                value,
                label: nameOf(value),
                count,
              })),
            ]}
          />
        </>
      }
    >
      <Body>
        {pages.isError ? <ErrorNotice error={pages.error} onRetry={() => void pages.refetch()} /> : null}
        {pages.isPending ? <Loading rows={10} /> : null}
        {first !== undefined && first.total_count === 0 ? (
          <Notice icon="guidelines" title="No guideline matches">
            Rules are read from CLAUDE.md, AGENTS.md, .cursor/rules, .kiro/steering and the files of other
            tools.
          </Notice>
        ) : null}
        {first !== undefined && first.total_count > 0 ? (
          <Panel title="Rules" count={first.total_count}>
            <ul className="divide-y divide-line">
              {pages.data?.pages
                .flatMap(({ guidelines }) => guidelines)
                .map(({ id, title, source_file, source_type, file_pattern, is_sample }) => (
                  <li key={id} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2 text-sm">
                    <Link
                      to="/console/guidelines/$id"
                      params={{ id }}
                      className="min-w-0 flex-1 font-medium hover:underline foreign"
                    >
                      {title}
                    </Link>
                    {is_sample ? <Chip tone="warn">sample</Chip> : null}
                    <Chip>{nameOf(source_type)}</Chip>
                    <bdi className="w-full font-mono text-faint text-xs foreign">
                      {file_pattern === undefined ? source_file : `${source_file}  ·  ${file_pattern}`}
                    </bdi>
                  </li>
                ))}
            </ul>
          </Panel>
        ) : null}
        {pages.hasNextPage ? (
          <div className="self-center">
            <Button isBusy={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
              Show more
            </Button>
          </div>
        ) : null}
      </Body>
    </Page>
  );
}
