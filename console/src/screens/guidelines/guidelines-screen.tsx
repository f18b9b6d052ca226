import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Guideline, GuidelineList, GuidelineQuery } from "../../../../src/client/index.ts";
import { asked, useClient } from "../../api/use-server.ts";
import { BarField, Chip, Choice } from "../../ui/chips.tsx";
import { Page } from "../../ui/page.tsx";
import { askForMore, Rows } from "../../ui/rows.tsx";
import { SourceLink } from "../../ui/source-link.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";
import { GuidelineTabs } from "./guideline-tabs.tsx";
import { nameOf } from "./tool-names.ts";

/** All guidelines, filtered by search and source. */
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
      isFixed
      tabs={<GuidelineTabs />}
      bar={
        <>
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
      {pages.isError && first === undefined ? (
        <ErrorNotice error={pages.error} onRetry={() => void pages.refetch()} />
      ) : null}
      {pages.isPending ? <Loading rows={10} /> : null}
      {first !== undefined && first.total_count === 0 ? (
        <Notice icon="guidelines" title={q || source ? "No guideline matches" : "No guidelines yet"}>
          Rules are read from CLAUDE.md, AGENTS.md, .cursor/rules, .kiro/steering and the files of other
          tools.
        </Notice>
      ) : null}
      {first !== undefined && first.total_count > 0 ? (
        <>
          <p role="status" className="px-4 py-2 text-faint text-xs tabular sm:px-6">
            {`${first.total_count.toLocaleString()} ${first.total_count === 1 ? "rule" : "rules"}`}
          </p>
          <Rows
            label="Rules"
            items={pages.data?.pages.flatMap(({ guidelines }) => guidelines) ?? []}
            keyOf={({ id }) => id}
            onEnd={() => askForMore(pages)}
          >
            {(one) => <GuidelineRow guideline={one} />}
          </Rows>
        </>
      ) : null}
    </Page>
  );
}

function GuidelineRow({
  guideline: { id, title, source_file, source_type, file_pattern, is_sample, is_ignored },
}: {
  readonly guideline: Guideline;
}): ReactNode {
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2 text-sm sm:px-6">
      <Link
        to="/console/guidelines/$id"
        params={{ id }}
        preload={false}
        className="min-w-0 flex-1 font-medium hover:underline foreign"
      >
        {visible(title)}
      </Link>
      {is_sample ? <Chip tone="warn">sample</Chip> : null}
      {is_ignored ? <Chip tone="warn">not in Git</Chip> : null}
      <Chip>{nameOf(source_type)}</Chip>
      <span className="flex w-full min-w-0 flex-wrap gap-x-3">
        <SourceLink path={source_file} />
        {file_pattern === undefined ? null : (
          <code className="min-w-0 font-mono text-faint text-xs foreign">{visible(file_pattern)}</code>
        )}
      </span>
    </div>
  );
}
