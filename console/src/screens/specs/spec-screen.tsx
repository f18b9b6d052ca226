import { Link, useParams, useSearch } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useState } from "react";
import type { Diagnostic, SpecBlock } from "../../../../src/client/index.ts";
import { useServer } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Chip } from "../../ui/chips.tsx";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { SourceLines } from "../../ui/source-lines.tsx";
import { SourceLink } from "../../ui/source-link.tsx";
import { Answer, Loading } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";
import { CriteriaRows } from "./criteria-rows.tsx";
import { GraphList } from "./graph-list.tsx";
import { toolName } from "./spec-names.ts";

// Loads the drawing and the Markdown parser when they are needed.
const SpecGraph = lazy(async () => ({ default: (await import("./spec-graph.tsx")).SpecGraph }));
const Markdown = lazy(async () => ({ default: (await import("../../ui/markdown.tsx")).Markdown }));

/** One block: its text next to its source, its criteria with tests, and related items. */
export function SpecScreen(): ReactNode {
  const { id } = useParams({ from: "/console/specs/$id" });
  const spec = useServer({ key: ["spec", id], ask: (client, signal) => client.specs.get(id, { signal }) });
  const feature = useFeature(spec.data);
  return (
    <Page
      title={visible(spec.data?.title ?? "Spec")}
      crumbs={[
        { label: "Specs", link: { to: "/console/specs" } },
        ...(feature === undefined
          ? []
          : [
              {
                label: visible(feature.name),
                link: {
                  to: "/console/specs",
                  search: { framework: feature.framework, feature: feature.feature },
                } as const,
              },
            ]),
      ]}
    >
      <Body>
        <Answer query={spec}>{(block) => <Block spec={block} />}</Answer>
      </Body>
    </Page>
  );
}

/** The feature that a block belongs to: its folder if that is a feature, otherwise its file. */
function useFeature(spec: SpecBlock | undefined) {
  const folder = spec?.path.replace(/\/[^/]*$/, "");
  const found = useServer({
    key: ["spec-feature", spec?.framework, spec?.path],
    enabled: spec !== undefined,
    ask: async (client, signal) => {
      const framework = spec?.framework;
      for (const feature of [folder, spec?.path]) {
        const { features } = await client.specs.features({ framework, feature, limit: 1 }, { signal });
        if (features[0] !== undefined) return features[0];
      }
      return null;
    },
  });
  return found.data ?? undefined;
}

function Block({ spec }: { readonly spec: SpecBlock }): ReactNode {
  const { id, path, spec_type, lifecycle, priority, tags, content, metadata } = spec;
  const { source, code_refs = [], test_refs = [], related_specs = [], user_story, author } = metadata;
  return (
    <>
      <div className="flex flex-wrap items-center gap-2 text-sm">
        <Chip>{toolName(spec)}</Chip>
        <Chip>{spec_type}</Chip>
        <Chip tone={lifecycle === "active" ? "good" : "warn"}>{lifecycle}</Chip>
        {metadata.status === undefined ? null : (
          <Chip>{visible(metadata.status.slice(0, 60)).replace("_", " ")}</Chip>
        )}
        <span className="text-soft">priority {priority}</span>
        {author === undefined ? null : (
          <span className="text-soft">
            by <bdi className="foreign">{visible(author)}</bdi>
          </span>
        )}
        {tags.slice(0, 40).map((tag) => (
          <span key={tag} className="text-faint foreign">
            #{visible(tag)}
          </span>
        ))}
      </div>
      <Problems id={id} />
      <div className="grid items-start gap-6 xl:grid-cols-2">
        <Panel title="Text">
          <div className="flex flex-col gap-3 p-4 text-sm">
            {user_story === undefined || content.includes(user_story) ? null : (
              <p className="text-soft foreign">{visible(user_story)}</p>
            )}
            <Suspense fallback={<Loading />}>
              <Markdown text={content} from={path} />
            </Suspense>
          </div>
        </Panel>
        {source === undefined ? null : (
          <Panel title={<SourceLink path={path} line={source.start_line} />}>
            <SourceLines path={path} from={source.start_line} to={source.end_line} />
          </Panel>
        )}
      </div>
      <Criteria spec={spec} />
      <Links title="Related specs" paths={related_specs} isSpec />
      <Links title="Code" paths={code_refs} />
      <Links title="Tests" paths={test_refs} />
      <Drawing id={id} />
    </>
  );
}

function Problems({ id }: { readonly id: string }): ReactNode {
  const diagnostics = useServer({
    key: ["diagnostics", "of", id],
    ask: (client, signal) => client.specs.diagnosticPage({ id, limit: 100 }, { signal }),
  });
  const own: readonly Diagnostic[] = diagnostics.data?.diagnostics ?? [];
  if (own.length === 0) return null;
  return (
    <Panel title="Problems" count={diagnostics.data?.total_count}>
      <ul className="divide-y divide-line">
        {own.map(({ severity, rule, message, path, line }) => (
          <li key={`${rule} ${line} ${message}`} className="flex flex-wrap gap-x-3 gap-y-1 px-4 py-2 text-sm">
            <Chip tone={severity === "error" ? "bad" : "warn"}>{rule}</Chip>
            <span className="min-w-0 flex-1 foreign">{visible(message)}</span>
            <SourceLink path={path} line={line} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Criteria({ spec }: { readonly spec: SpecBlock }): ReactNode {
  const { criterion } = useSearch({ from: "/console/specs/$id" });
  const isStated = spec.spec_type === "requirement" || spec.spec_type === "constraint";
  const hasCriteria = isStated && (spec.metadata.ears_patterns?.length ?? 0) > 0;
  const coverage = useServer({
    key: ["coverage", "of", spec.id],
    enabled: hasCriteria,
    ask: (client, signal) => client.specs.coverage({ spec: spec.id, limit: 1_000 }, { signal }),
  });
  if (!hasCriteria) return null;
  return (
    <Panel title="Acceptance criteria" count={coverage.data?.total_count}>
      <Answer query={coverage}>
        {({ criteria }) => <CriteriaRows criteria={criteria} marked={criterion} />}
      </Answer>
    </Panel>
  );
}

const mostLinks = 200;

function Links({
  title,
  paths,
  isSpec = false,
}: {
  readonly title: string;
  readonly paths: readonly string[];
  readonly isSpec?: boolean;
}): ReactNode {
  if (paths.length === 0) return null;
  return (
    <Panel title={title} count={paths.length}>
      <ul className="flex flex-col gap-1 p-4 text-sm">
        {paths.slice(0, mostLinks).map((path) => (
          <li key={path} className="flex flex-wrap items-baseline gap-x-3 foreign">
            {isSpec ? (
              <Link
                to="/console/specs/$id"
                params={{ id: path }}
                preload={false}
                className="text-accent hover:underline"
              >
                {visible(path)}
              </Link>
            ) : (
              <>
                <SourceLink path={path} />
                <Link
                  to="/console/specs/impact"
                  search={{ files: path }}
                  className="text-accent text-xs hover:underline"
                  aria-label={`Impact of ${path}`}
                >
                  impact
                </Link>
              </>
            )}
          </li>
        ))}
        {paths.length > mostLinks ? (
          <li className="text-soft text-xs">{`${(paths.length - mostLinks).toLocaleString()} more`}</li>
        ) : null}
      </ul>
    </Panel>
  );
}

function Drawing({ id }: { readonly id: string }): ReactNode {
  const [isOpen, open] = useState(false);
  const impact = useServer({
    key: ["impact", "of", id],
    enabled: isOpen,
    ask: (client, signal) =>
      client.specs.impact({ ids: [id], depth: 2, limit: 100, graph: true }, { signal }),
  });
  return (
    <Panel
      title="Related items"
      actions={
        isOpen ? undefined : (
          <Button icon="branch" onClick={() => open(true)}>
            Draw
          </Button>
        )
      }
    >
      {isOpen ? (
        <Answer query={impact}>
          {({ graph }) =>
            graph === undefined ? null : (
              <>
                <Suspense fallback={<Loading />}>
                  <SpecGraph graph={graph} />
                </Suspense>
                <GraphList graph={graph} />
              </>
            )
          }
        </Answer>
      ) : (
        <p className="p-4 text-soft text-sm">
          Requirements, designs, tasks, tests and files, as a graph and as a list.
        </p>
      )}
    </Panel>
  );
}
