import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { StalePage } from "../../../../src/client/index.ts";
import { asked, useClient } from "../../api/use-server.ts";
import { Page } from "../../ui/page.tsx";
import { askForMore, Rows } from "../../ui/rows.tsx";
import { SourceLink } from "../../ui/source-link.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";
import { SpecTabs } from "./spec-tabs.tsx";

/** The specs whose code changed after them, with the commits that changed it. */
export function StaleScreen(): ReactNode {
  const client = useClient();
  const pages = useInfiniteQuery({
    queryKey: ["stale"],
    queryFn: ({ pageParam, signal }) =>
      asked(client, () => client.specs.stale({ limit: 200, cursor: pageParam }, { signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: StalePage) => page.next_cursor,
  });
  const first = pages.data?.pages[0];
  return (
    <Page
      title="Stale"
      crumbs={[{ label: "Specs", link: { to: "/console/specs" } }]}
      isFixed
      tabs={<SpecTabs />}
    >
      {pages.isError && first === undefined ? (
        <ErrorNotice error={pages.error} onRetry={() => void pages.refetch()} />
      ) : null}
      {pages.isPending ? <Loading rows={10} /> : null}
      {first === undefined ? null : (
        <div className="flex flex-col gap-1 px-4 py-2 text-soft text-sm sm:px-6">
          {first.notes.map((note) => (
            <p key={note} className="foreign">
              {visible(note)}
            </p>
          ))}
          <p>
            {`${first.total_count.toLocaleString()} of ${first.checked.toLocaleString()} specs that name code fell behind it. `}
            <Link to="/console/specs/criteria" search={{ show: "stale" }} className="text-accent underline">
              Results of tests that are older than what they are about
            </Link>
          </p>
        </div>
      )}
      {first !== undefined && first.total_count === 0 ? (
        <Notice icon="check" title="No spec is older than the code that it names" />
      ) : null}
      {first !== undefined && first.total_count > 0 ? (
        <Rows
          label="Stale specs"
          items={pages.data?.pages.flatMap(({ stale }) => stale) ?? []}
          keyOf={({ id }) => id}
          onEnd={() => askForMore(pages)}
        >
          {(one) => <StaleRow stale={one} />}
        </Rows>
      ) : null}
    </Page>
  );
}

const mostFiles = 10;

function StaleRow({ stale }: { readonly stale: StalePage["stale"][number] }): ReactNode {
  const { id, title, path, line, files, updated_at, accepted_at } = stale;
  return (
    <div className="flex flex-col gap-1 px-4 py-2 text-sm sm:px-6">
      <Link
        to="/console/specs/$id"
        params={{ id }}
        preload={false}
        className="text-accent hover:underline foreign"
      >
        {visible(title)}
      </Link>
      <p className="flex flex-wrap gap-x-2 text-faint text-xs">
        <SourceLink path={path} line={line} />
        {`last changed ${updated_at.slice(0, 10)}${accepted_at === undefined ? "" : `, accepted ${accepted_at.slice(0, 10)}`}; since then:`}
      </p>
      <ul className="flex flex-col gap-0.5 pl-4 text-xs">
        {files.slice(0, mostFiles).map((file) => (
          <li key={file.path} className="flex flex-wrap items-baseline gap-x-2">
            <SourceLink path={file.path} />
            <span className="text-soft">
              {file.commit === undefined
                ? "changed and not committed"
                : `changed ${file.changed_at?.slice(0, 10) ?? ""} in ${file.commit.slice(0, 8)}`}
            </span>
          </li>
        ))}
        {files.length > mostFiles ? (
          <li className="text-soft">{`${files.length - mostFiles} more files`}</li>
        ) : null}
      </ul>
    </div>
  );
}
