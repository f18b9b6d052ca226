import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { DiagnosticPage, DiagnosticQuery } from "../../../../src/client/index.ts";
import { asked, useClient, useServer } from "../../api/use-server.ts";
import { BarField, Choice } from "../../ui/chips.tsx";
import { Filter } from "../../ui/filter.tsx";
import { Page } from "../../ui/page.tsx";
import { askForMore, Rows } from "../../ui/rows.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { ProblemRow } from "./problem-row.tsx";
import { frameworkNamesWith, frameworkOf } from "./spec-names.ts";
import { SpecTabs } from "./spec-tabs.tsx";

/** The problems of the specs, by severity, rule, framework and file; page by page as the reader scrolls. */
export function ProblemsScreen(): ReactNode {
  const search = useSearch({ from: "/console/specs/problems" });
  const { rule, path } = search;
  const framework = frameworkOf(search.framework);
  const severity = search.severity === "error" || search.severity === "warning" ? search.severity : undefined;
  const navigate = useNavigate();
  const client = useClient();
  // The server refuses an unknown rule with an error.
  const query: DiagnosticQuery = {
    severity,
    rule: rule as DiagnosticQuery["rule"],
    path,
    framework,
    limit: 200,
  };
  const pages = useInfiniteQuery({
    queryKey: ["diagnostics", query],
    queryFn: ({ pageParam, signal }) =>
      asked(client, () => client.specs.diagnosticPage({ ...query, cursor: pageParam }, { signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: DiagnosticPage) => page.next_cursor,
  });
  const set = (changed: Readonly<Record<string, string | undefined>>): void => {
    void navigate({ to: "/console/specs/problems", search: { severity, rule, path, framework, ...changed } });
  };
  const first = pages.data?.pages[0];
  const { error = 0, warning = 0 } = first?.counts_by_severity ?? {};
  const frameworks = Object.keys(first?.counts_by_framework ?? {}).flatMap((one) => frameworkOf(one) ?? []);
  const known = useServer({
    key: ["spec-frameworks"],
    ask: (client, signal) => client.specs.features({ limit: 1 }, { signal }),
  });
  const names = frameworkNamesWith(known.data?.counts_by_tool);
  const isFiltered = (severity ?? rule ?? path ?? framework) !== undefined;
  return (
    <Page
      title="Problems"
      crumbs={[{ label: "Specs", link: { to: "/console/specs" } }]}
      isFixed
      tabs={<SpecTabs />}
      bar={
        <>
          <Choice
            label="Severity"
            value={severity ?? ""}
            onChoose={(value) => set({ severity: value || undefined })}
            choices={[
              { value: "", label: "All", count: error + warning },
              { value: "error", label: "Errors", count: error },
              { value: "warning", label: "Warnings", count: warning },
            ]}
          />
          <Filter
            label="Rule"
            value={rule}
            choices={Object.keys(first?.counts_by_rule ?? {}).toSorted()}
            onChange={(value) => set({ rule: value })}
          />
          <Filter
            label="Framework"
            value={framework && names[framework]}
            choices={frameworks.map((one) => names[one])}
            onChange={(name) => set({ framework: frameworks.find((one) => names[one] === name) })}
          />
          <BarField
            label="File or folder"
            value={path ?? ""}
            onSubmit={(text) => set({ path: text.replace(/\/+$/, "") || undefined })}
          />
        </>
      }
    >
      {pages.isError && first === undefined ? (
        <ErrorNotice error={pages.error} onRetry={() => void pages.refetch()} />
      ) : null}
      {pages.isPending ? <Loading rows={10} /> : null}
      {first !== undefined && first.total_count === 0 ? (
        <Notice icon="check" title={isFiltered ? "None of this kind" : "Nothing is wrong"}>
          {isFiltered ? "Other filters may find some." : "All specs of this repository can be read."}
        </Notice>
      ) : null}
      {first !== undefined && first.total_count > 0 ? (
        <>
          <p role="status" className="px-4 py-2 text-faint text-xs tabular sm:px-6">
            {`${first.total_count.toLocaleString()} ${first.total_count === 1 ? "problem" : "problems"}`}
          </p>
          <Rows
            label="Problems"
            items={pages.data?.pages.flatMap(({ diagnostics }) => diagnostics) ?? []}
            keyOf={(one) => JSON.stringify([one.path, one.line, one.rule, one.id, one.field, one.message])}
            onEnd={() => askForMore(pages)}
          >
            {(one) => <ProblemRow problem={one} link={one.id === undefined ? undefined : { spec: one.id }} />}
          </Rows>
        </>
      ) : null}
    </Page>
  );
}
