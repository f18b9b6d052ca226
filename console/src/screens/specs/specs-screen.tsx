import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { OutlineQuery, SpecBlock, SpecPage, SpecQuery } from "../../../../src/client/index.ts";
import { asked, useClient, useServer } from "../../api/use-server.ts";
import { BarField, Chip } from "../../ui/chips.tsx";
import { Command } from "../../ui/command.tsx";
import { Filter } from "../../ui/filter.tsx";
import { Page } from "../../ui/page.tsx";
import { askForMore, Rows } from "../../ui/rows.tsx";
import { ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";
import { frameworkNamesWith, frameworkOf, toolName, typeNames, typeOf } from "./spec-names.ts";
import { SpecTabs } from "./spec-tabs.tsx";
import { SpecTree } from "./spec-tree.tsx";

/** All specs as a tree, a part of it, or what a search finds. */
export function SpecsScreen(): ReactNode {
  const search = useSearch({ from: "/console/specs" });
  const { q, feature } = search;
  const framework = frameworkOf(search.framework);
  const type = typeOf(search.type);
  const navigate = useNavigate();
  const set = (changed: Readonly<Record<string, string | undefined>>): void => {
    void navigate({ to: "/console/specs", search: { q, framework, feature, type, ...changed } });
  };
  const known = useServer({
    key: ["spec-frameworks"],
    ask: (client, signal) => client.specs.features({ limit: 1 }, { signal }),
  });
  const frameworks = Object.keys(known.data?.counts_by_framework ?? {}).flatMap(
    (one) => frameworkOf(one) ?? [],
  );
  const names = frameworkNamesWith(known.data?.counts_by_tool);
  return (
    <Page
      title={feature === undefined ? "Specs" : visible(feature)}
      crumbs={feature === undefined ? [] : [{ label: "Specs", link: { to: "/console/specs" } }]}
      isFixed
      actions={
        framework === undefined || feature === undefined ? null : (
          <SpecRunCommand framework={framework} feature={feature} />
        )
      }
      tabs={<SpecTabs />}
      bar={
        <>
          <BarField
            label="Search specs"
            value={q ?? ""}
            onSubmit={(text) => set({ q: text || undefined, feature: undefined })}
          />
          <Filter
            label="Framework"
            value={framework && names[framework]}
            choices={frameworks.map((one) => names[one])}
            onChange={(name) =>
              set({ framework: frameworks.find((one) => names[one] === name), feature: undefined })
            }
          />
          {q === undefined && feature === undefined ? null : (
            <Filter
              label="Kind"
              value={type && typeNames[type]}
              choices={Object.values(typeNames)}
              onChange={(name) =>
                set({ type: typeOf(Object.entries(typeNames).find(([, one]) => one === name)?.[0]) })
              }
            />
          )}
        </>
      }
    >
      {q === undefined ? (
        <SpecTree scope={{ framework, feature, type }} />
      ) : (
        <Found query={{ q, framework, spec_type: type }} />
      )}
    </Page>
  );
}

/** The command that does the open tasks of a feature, if it has some. */
function SpecRunCommand({ framework, feature }: Pick<OutlineQuery, "framework" | "feature">): ReactNode {
  const answer = useServer({
    key: ["specs", "open-tasks", framework, feature],
    async ask(client, signal) {
      const tasks = { framework, feature, spec_type: "task", limit: 1_000 } as const;
      const { blocks } = await client.specs.outline(tasks, { signal });
      if (!blocks.some(({ status }) => status === "open" || status === "in_progress")) return null;
      return (await client.specs.features({ framework, feature, limit: 1 }, { signal })).features[0] ?? null;
    },
  });
  const name = answer.data?.name;
  // Any other name would need quotes, which are not the same in every terminal.
  return name !== undefined && /^\w[\w./-]*$/.test(name) ? <Command text={`kit run --spec ${name}`} /> : null;
}

/** Lists the results of a search, best first; page by page as the reader scrolls. */
function Found({ query }: { readonly query: SpecQuery }): ReactNode {
  const client = useClient();
  const pages = useInfiniteQuery({
    queryKey: ["specs", query],
    queryFn: ({ pageParam, signal }) =>
      asked(client, () => client.specs.list({ ...query, limit: 100, cursor: pageParam }, { signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: SpecPage) => page.next_cursor,
  });
  if (pages.isError && pages.data === undefined)
    return <ErrorNotice error={pages.error} onRetry={() => void pages.refetch()} />;
  if (pages.data === undefined) return <Loading rows={12} />;
  const total = pages.data.pages[0]?.total_count ?? 0;
  if (total === 0)
    return (
      <Notice icon="search" title="No spec matches">
        All words must be in a title, a summary, a text or a tag.
      </Notice>
    );
  return (
    <>
      <p
        role="status"
        className="px-4 py-2 text-faint text-xs tabular sm:px-6"
      >{`${total.toLocaleString()} found`}</p>
      <Rows
        label="Found specs"
        items={pages.data.pages.flatMap(({ specs }) => specs)}
        keyOf={({ id }) => id}
        onEnd={() => askForMore(pages)}
      >
        {(spec) => <FoundRow spec={spec} />}
      </Rows>
    </>
  );
}

function FoundRow({
  spec: { id, title, path, framework, spec_type, lifecycle },
}: {
  readonly spec: SpecBlock;
}): ReactNode {
  return (
    <Link
      to="/console/specs/$id"
      params={{ id }}
      preload={false}
      className="flex min-w-0 flex-col gap-0.5 px-4 py-2 text-sm hover:bg-raised sm:px-6"
    >
      <span className="flex min-w-0 items-center gap-2">
        <bdi className="min-w-0 truncate font-medium foreign">{visible(title)}</bdi>
        <Chip>{spec_type}</Chip>
        {lifecycle === "active" ? null : <Chip tone="warn">{lifecycle}</Chip>}
      </span>
      <bdi className="truncate font-mono text-faint text-xs foreign">{`${toolName({ framework, path })} · ${visible(path)}`}</bdi>
    </Link>
  );
}
