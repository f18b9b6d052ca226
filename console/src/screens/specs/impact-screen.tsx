import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense } from "react";
import type { Impact, ImpactGraph } from "../../../../src/client/index.ts";
import { asked, useClient } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { BarField } from "../../ui/chips.tsx";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { SourceLink } from "../../ui/source-link.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";
import { GraphList } from "./graph-list.tsx";
import { SpecTabs } from "./spec-tabs.tsx";

const SpecGraph = lazy(async () => ({ default: (await import("./spec-graph.tsx")).SpecGraph }));

/** The blocks, tests and files that changed files, or changes since a Git revision, affect. */
export function ImpactScreen(): ReactNode {
  const { files = "", since } = useSearch({ from: "/console/specs/impact" });
  const navigate = useNavigate();
  const client = useClient();
  const changed = files.split(/[\s,]+/).filter((path) => path !== "");
  const isAsked = changed.length > 0 || since !== undefined;
  const pages = useInfiniteQuery({
    queryKey: ["impact", changed, since],
    enabled: isAsked,
    queryFn: ({ pageParam, signal }) =>
      asked(client, () =>
        client.specs.impact(
          { files: changed, since, graph: true, limit: 100, cursor: pageParam },
          { signal },
        ),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: Impact) => page.next_cursor,
  });
  const first = pages.data?.pages[0];
  const set = (search: Readonly<Record<string, string | undefined>>): void => {
    void navigate({ to: "/console/specs/impact", search: { files: files || undefined, since, ...search } });
  };
  return (
    <Page
      title="Impact"
      crumbs={[{ label: "Specs", link: { to: "/console/specs" } }]}
      tabs={<SpecTabs />}
      bar={
        <>
          <BarField
            label="Changed files, such as src/app.ts"
            value={files}
            onSubmit={(text) => set({ files: text || undefined })}
          />
          <BarField
            label="Since a revision, such as main"
            value={since ?? ""}
            onSubmit={(text) => set({ since: text || undefined })}
          />
        </>
      }
    >
      <Body>
        {isAsked ? null : (
          <Notice
            icon="branch"
            title="What changes?"
            action={<Button onClick={() => set({ since: "HEAD" })}>Uncommitted changes</Button>}
          >
            Name files of the repository, or a branch, tag or commit: this page draws the specs, tests and
            files that the change affects.
          </Notice>
        )}
        {isAsked && pages.isPending ? <Loading /> : null}
        {pages.isError && first === undefined ? (
          <ErrorNotice error={pages.error} onRetry={() => void pages.refetch()} />
        ) : null}
        {first === undefined ? null : (
          <>
            {first.changed_files === undefined ? null : (
              <Files title="Changed files" paths={first.changed_files} />
            )}
            {first.total_count === 0 ? (
              <Notice icon="check" title="No spec is affected">
                Nothing in the specs of this repository leads to what changes.
              </Notice>
            ) : (
              <Affected pages={pages.data?.pages ?? []} first={first} />
            )}
            {pages.hasNextPage ? (
              <div className="self-center">
                <Button isBusy={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
                  Show more
                </Button>
              </div>
            ) : null}
            <Files title="Tests to run" paths={first.tests} />
          </>
        )}
      </Body>
    </Page>
  );
}

function Affected({
  pages,
  first,
}: {
  readonly pages: readonly Impact[];
  readonly first: Impact;
}): ReactNode {
  const graph = joined(pages);
  const titles = new Map(graph.nodes.map(({ id, title }) => [id, title]));
  return (
    <>
      <Panel title="Paths">
        <Suspense fallback={<Loading />}>
          <SpecGraph graph={graph} />
        </Suspense>
        <GraphList graph={graph} />
      </Panel>
      <Panel title="Affected blocks" count={first.total_count}>
        <ul className="divide-y divide-line">
          {pages.flatMap(({ affected }) =>
            affected.map(({ id, score }) => (
              <li key={id} className="flex items-baseline gap-3 px-4 py-2 text-sm">
                <Link
                  to="/console/specs/$id"
                  params={{ id }}
                  preload={false}
                  className="min-w-0 text-accent hover:underline foreign"
                >
                  {visible(titles.get(id) ?? id)}
                </Link>
                <span className="ml-auto text-faint text-xs tabular" title="Closeness to the change">
                  {Math.round(score * 100)} %
                </span>
              </li>
            )),
          )}
        </ul>
        {first.same_feature.length === 0 ? null : (
          <p className="border-line border-t px-4 py-2 text-soft text-xs foreign">
            {`Besides, in the same features: ${first.same_feature
              .slice(0, 20)
              .map(({ feature, specs }) => `${visible(feature)} (${specs})`)
              .join(", ")}`}
          </p>
        )}
      </Panel>
    </>
  );
}

/** Joins the graphs of several pages. */
function joined(pages: readonly Impact[]): ImpactGraph {
  const nodes = new Map<string, ImpactGraph["nodes"][number]>();
  const edges = new Map<string, ImpactGraph["edges"][number]>();
  let omitted = 0;
  for (const { graph } of pages) {
    for (const node of graph?.nodes ?? []) nodes.set(node.id, node);
    for (const edge of graph?.edges ?? []) edges.set(`${edge.from}\n${edge.to}\n${edge.kind}`, edge);
    omitted += graph?.omitted ?? 0;
  }
  return { nodes: [...nodes.values()], edges: [...edges.values()], omitted };
}

const mostFiles = 100;

function Files({ title, paths }: { readonly title: string; readonly paths: readonly string[] }): ReactNode {
  if (paths.length === 0) return null;
  return (
    <Panel title={title} count={paths.length}>
      <ul className="flex max-h-60 flex-col gap-1 overflow-y-auto p-4" tabIndex={0} aria-label={title}>
        {paths.slice(0, mostFiles).map((path) => (
          <li key={path}>
            <SourceLink path={path} />
          </li>
        ))}
        {paths.length > mostFiles ? (
          <li className="text-soft text-xs">{`${(paths.length - mostFiles).toLocaleString()} more`}</li>
        ) : null}
      </ul>
    </Panel>
  );
}
