import { Link, useParams } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useState } from "react";
import type { Diagnostic, SpecBlock } from "../../../../src/client/index.ts";
import { useServer } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Chip } from "../../ui/chips.tsx";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { SourceLines } from "../../ui/source-lines.tsx";
import { Answer, Loading } from "../../ui/states.tsx";
import { CriteriaRows } from "./criteria-rows.tsx";
import { frameworkNames } from "./spec-names.ts";

// Drawing loads when it is opened.
const SpecGraph = lazy(async () => ({ default: (await import("./spec-graph.tsx")).SpecGraph }));

/** One block: its text, its source, its criteria with tests, and what hangs together with it. */
export function SpecScreen(): ReactNode {
  const { id } = useParams({ from: "/console/specs/$id" });
  const spec = useServer({ key: ["spec", id], ask: (client, signal) => client.specs.get(id, { signal }) });
  return (
    <Page title={spec.data?.title ?? "Spec"} crumbs={[{ label: "Specs", link: { to: "/console/specs" } }]}>
      <Body>
        <Answer query={spec}>{(block) => <Block spec={block} />}</Answer>
      </Body>
    </Page>
  );
}

function Block({ spec }: { readonly spec: SpecBlock }): ReactNode {
  const { id, path, framework, spec_type, lifecycle, priority, tags, content, metadata } = spec;
  const { source, code_refs = [], test_refs = [], related_specs = [], user_story, author } = metadata;
  return (
    <>
      <div className="flex flex-wrap items-center gap-2 text-sm">
        <Chip>{frameworkNames[framework]}</Chip>
        <Chip>{spec_type}</Chip>
        <Chip tone={lifecycle === "active" ? "good" : "warn"}>{lifecycle}</Chip>
        {metadata.status === undefined ? null : <Chip>{metadata.status.replace("_", " ")}</Chip>}
        <span className="text-soft">priority {priority}</span>
        {author === undefined ? null : (
          <span className="text-soft">
            by <bdi className="foreign">{author}</bdi>
          </span>
        )}
        {tags.map((tag) => (
          <span key={tag} className="text-faint foreign">
            #{tag}
          </span>
        ))}
      </div>
      <Problems id={id} />
      <Panel title="Text">
        <div className="flex flex-col gap-3 p-4 text-sm">
          {user_story === undefined ? null : <p className="text-soft foreign">{user_story}</p>}
          <pre className="whitespace-pre-wrap font-sans foreign">{content}</pre>
        </div>
      </Panel>
      <Criteria spec={spec} />
      {source === undefined ? null : (
        <Panel title={<bdi className="foreign">{`${path}:${source.start_line}–${source.end_line}`}</bdi>}>
          <SourceLines path={path} from={source.start_line} to={source.end_line} />
        </Panel>
      )}
      <Links title="Related specs" paths={related_specs} isSpec />
      <Links title="Code" paths={code_refs} />
      <Links title="Tests" paths={test_refs} />
      <Drawing id={id} />
    </>
  );
}

function Problems({ id }: { readonly id: string }): ReactNode {
  const diagnostics = useServer({
    key: ["diagnostics"],
    ask: (client, signal) => client.specs.diagnostics({ signal }),
  });
  const own: readonly Diagnostic[] = diagnostics.data?.filter((one) => one.id === id) ?? [];
  if (own.length === 0) return null;
  return (
    <Panel title="Problems" count={own.length}>
      <ul className="divide-y divide-line">
        {own.map(({ rule, message, line }) => (
          <li key={`${rule} ${line} ${message}`} className="flex gap-3 px-4 py-2 text-sm">
            <Chip tone="warn">{rule}</Chip>
            <span className="foreign">{message}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** Criteria are told by feature: those of this block are among the first. */
function Criteria({ spec }: { readonly spec: SpecBlock }): ReactNode {
  const hasCriteria = (spec.metadata.ears_patterns?.length ?? 0) > 0;
  const coverage = useServer({
    key: ["coverage", "of", spec.id],
    enabled: hasCriteria,
    ask: async (client, signal) => {
      let cursor: string | undefined;
      for (;;) {
        const page = await client.specs.coverage({ limit: 1_000, cursor }, { signal });
        const own = page.criteria.filter(({ spec_id }) => spec_id === spec.id);
        cursor = page.next_cursor;
        if (own.length > 0 || cursor === undefined) return own;
      }
    },
  });
  if (!hasCriteria) return null;
  return (
    <Panel title="Acceptance criteria" count={coverage.data?.length}>
      <Answer query={coverage}>{(criteria) => <CriteriaRows criteria={criteria} />}</Answer>
    </Panel>
  );
}

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
        {paths.map((path) => (
          <li key={path} className="foreign">
            {isSpec ? (
              <Link to="/console/specs/$id" params={{ id: path }} className="text-accent hover:underline">
                {path}
              </Link>
            ) : (
              <Link
                to="/console/specs/impact"
                search={{ files: path }}
                className="font-mono text-xs hover:underline"
              >
                {path}
              </Link>
            )}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Drawing({ id }: { readonly id: string }): ReactNode {
  const [isOpen, open] = useState(false);
  const impact = useServer({
    key: ["impact", "of", id],
    enabled: isOpen,
    ask: (client, signal) => client.specs.impact({ ids: [id], depth: 2, limit: 200 }, { signal }),
  });
  return (
    <Panel
      title="What hangs together with it"
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
          {({ affected }) => (
            <Suspense fallback={<Loading />}>
              <SpecGraph
                edges={affected.flatMap(({ path }) => path)}
                roots={[id]}
                specs={[id, ...affected.map((one) => one.id)]}
              />
            </Suspense>
          )}
        </Answer>
      ) : (
        <p className="p-4 text-soft text-sm">Requirements, designs, tasks, tests and files, as a graph.</p>
      )}
    </Panel>
  );
}
