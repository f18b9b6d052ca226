import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { CoveragePage, CoverageQuery } from "../../../../src/client/index.ts";
import { asked, useClient } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { BarField, Choice } from "../../ui/chips.tsx";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { CriteriaRows } from "./criteria-rows.tsx";
import { SpecTabs } from "./spec-tabs.tsx";

/** All acceptance criteria, by how their tests ended when they last ran. */
export function CriteriaScreen(): ReactNode {
  const { feature, show = "all" } = useSearch({ from: "/console/specs/criteria" });
  const navigate = useNavigate();
  const client = useClient();
  const query = { feature, show, limit: 100 } as CoverageQuery;
  const pages = useInfiniteQuery({
    queryKey: ["coverage", query],
    queryFn: ({ pageParam, signal }) =>
      asked(client, () => client.specs.coverage({ ...query, cursor: pageParam }, { signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: CoveragePage) => page.next_cursor,
  });
  const set = (search: Record<string, string | undefined>): void => {
    void navigate({ to: "/console/specs/criteria", search: { feature, show, ...search } });
  };
  const first = pages.data?.pages[0];
  const totals = first?.totals;
  return (
    <Page
      title="Criteria"
      crumbs={[{ label: "Specs", link: { to: "/console/specs" } }]}
      bar={
        <>
          <SpecTabs />
          <BarField
            label="Feature"
            value={feature ?? ""}
            onSubmit={(text) => set({ feature: text || undefined })}
          />
          <Choice
            label="State"
            value={show}
            onChoose={(value) => set({ show: value === "all" ? undefined : value })}
            choices={[
              { value: "all", label: "All", count: totals?.criteria ?? 0 },
              { value: "failing", label: "Failing", count: totals?.failing ?? 0 },
              { value: "uncovered", label: "No test", count: totals?.uncovered ?? 0 },
              { value: "never_run", label: "Never run", count: totals?.never_run ?? 0 },
              { value: "passing", label: "Passing", count: totals?.passing ?? 0 },
            ]}
          />
        </>
      }
    >
      <Body>
        {pages.isError ? <ErrorNotice error={pages.error} onRetry={() => void pages.refetch()} /> : null}
        {pages.isPending ? <Loading rows={10} /> : null}
        {first !== undefined && totals !== undefined && totals.passing + totals.failing === 0 ? (
          <p className="text-soft text-sm">
            No results of tests yet: <code className="font-mono">kit specs results junit.xml</code> hands them
            in.
          </p>
        ) : null}
        {first !== undefined && first.total_count === 0 ? (
          <Notice
            icon="check"
            title={totals?.criteria === 0 ? "No acceptance criteria" : "None in this state"}
          >
            Criteria are read from requirements, such as “WHEN … THEN the system SHALL …”.
          </Notice>
        ) : null}
        {first !== undefined && first.total_count > 0 ? (
          <Panel title="Acceptance criteria" count={first.total_count}>
            <CriteriaRows criteria={pages.data?.pages.flatMap(({ criteria }) => criteria) ?? []} />
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
