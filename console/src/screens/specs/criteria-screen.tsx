import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { CoveragePage, CoverageQuery } from "../../../../src/client/index.ts";
import { asked, useClient } from "../../api/use-server.ts";
import { BarField, Choice } from "../../ui/chips.tsx";
import { Page } from "../../ui/page.tsx";
import { askForMore, Rows } from "../../ui/rows.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { CriterionRow } from "./criteria-rows.tsx";
import { SpecTabs } from "./spec-tabs.tsx";

const filters = [
  "all",
  "not_passing",
  "failing",
  "uncovered",
  "never_run",
  "partly_run",
  "passing",
  "stale",
] as const;

/** All acceptance criteria, by the last results of their tests. */
export function CriteriaScreen(): ReactNode {
  const search = useSearch({ from: "/console/specs/criteria" });
  const { feature } = search;
  const show = filters.find((one) => one === search.show) ?? "all";
  const navigate = useNavigate();
  const client = useClient();
  const query: CoverageQuery = { feature, show, limit: 200 };
  const pages = useInfiniteQuery({
    queryKey: ["coverage", query],
    queryFn: ({ pageParam, signal }) =>
      asked(client, () => client.specs.coverage({ ...query, cursor: pageParam }, { signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: CoveragePage) => page.next_cursor,
  });
  const set = (changed: Readonly<Record<string, string | undefined>>): void => {
    void navigate({ to: "/console/specs/criteria", search: { feature, show, ...changed } });
  };
  const first = pages.data?.pages[0];
  const totals = first?.totals;
  return (
    <Page
      title="Criteria"
      crumbs={[{ label: "Specs", link: { to: "/console/specs" } }]}
      isFixed
      tabs={<SpecTabs />}
      bar={
        <>
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
              {
                value: "not_passing",
                label: "No passing test",
                count: (totals?.criteria ?? 0) - (totals?.passing ?? 0),
              },
              { value: "failing", label: "Failing", count: totals?.failing ?? 0 },
              { value: "uncovered", label: "No test", count: totals?.uncovered ?? 0 },
              { value: "never_run", label: "Never run", count: totals?.never_run ?? 0 },
              { value: "partly_run", label: "Partly run", count: totals?.partly_run ?? 0 },
              { value: "passing", label: "Passing", count: totals?.passing ?? 0 },
              { value: "stale", label: "Stale result", count: totals?.stale ?? 0 },
            ]}
          />
        </>
      }
    >
      {pages.isError && first === undefined ? (
        <ErrorNotice error={pages.error} onRetry={() => void pages.refetch()} />
      ) : null}
      {pages.isPending ? <Loading rows={10} /> : null}
      {totals !== undefined &&
      totals.criteria > 0 &&
      totals.passing + totals.failing + totals.partly_run === 0 ? (
        <p className="px-4 py-2 text-soft text-sm">
          No results of tests yet: <code className="font-mono">kit specs results junit.xml</code> hands them
          in.
        </p>
      ) : null}
      {first !== undefined && first.total_count === 0 ? (
        <Notice icon="check" title={totals?.criteria === 0 ? "No acceptance criteria" : "None in this state"}>
          Criteria are read from requirements, such as “WHEN … THEN the system SHALL …”.
        </Notice>
      ) : null}
      {first !== undefined && first.total_count > 0 ? (
        <Rows
          label="Acceptance criteria"
          items={pages.data?.pages.flatMap(({ criteria }) => criteria) ?? []}
          keyOf={({ id, path, line }) => `${id} ${path} ${line}`}
          onEnd={() => askForMore(pages)}
        >
          {(criterion) => <CriterionRow criterion={criterion} />}
        </Rows>
      ) : null}
    </Page>
  );
}
