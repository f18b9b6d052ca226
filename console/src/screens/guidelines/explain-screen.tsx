import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import type { FileExplanation } from "../../../../src/client/index.ts";
import { useServer } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { BarField } from "../../ui/chips.tsx";
import { Filter } from "../../ui/filter.tsx";
import { Body, Page } from "../../ui/page.tsx";
import { SourceLink } from "../../ui/source-link.tsx";
import { Answer, Notice } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";
import { GuidelineTabs } from "./guideline-tabs.tsx";
import { formatOf, nameOf } from "./tool-names.ts";

type Explanation = FileExplanation["explanations"][number];

/** The rules that apply to a file, compared by tool, with reasons and tokens. */
export function ExplainScreen(): ReactNode {
  const { file = "", tool } = useSearch({ from: "/console/guidelines/explain" });
  const navigate = useNavigate();
  const explanation = useServer({
    key: ["explain", file],
    enabled: file !== "",
    ask: (client, signal) => client.guidelines.explain(file, {}, { signal }),
  });
  const present = useServer({
    key: ["guidelines", "counts"],
    ask: (client, signal) => client.guidelines.list({ limit: 1 }, { signal }),
  });
  const tools = explanation.data?.explanations.map((one) => one.tool) ?? [];
  const set = (changed: Readonly<Record<string, string | undefined>>): void => {
    const search = { file: file || undefined, tool, ...changed };
    void navigate({ to: "/console/guidelines/explain", search });
  };
  return (
    <Page
      title="What applies to a file"
      crumbs={[{ label: "Guidelines", link: { to: "/console/guidelines" } }]}
      tabs={<GuidelineTabs />}
      bar={
        <>
          <BarField
            label="A file, such as src/app.ts"
            value={file}
            onSubmit={(text) => set({ file: text || undefined })}
          />
          <Filter
            label="Tool"
            value={tool && nameOf(tool)}
            choices={tools.map(nameOf)}
            onChange={(name) => set({ tool: tools.find((one) => nameOf(one) === name) })}
          />
        </>
      }
    >
      <Body>
        {file === "" ? (
          <Notice icon="guidelines" title="Which file?">
            Name a file of the repository; it need not exist. Each tool is shown with the rules that it would
            read.
          </Notice>
        ) : (
          <Answer query={explanation}>
            {({ explanations }) => (
              <Columns
                explanations={explanations}
                tool={tool}
                counts={present.data?.counts_by_source ?? {}}
              />
            )}
          </Answer>
        )}
      </Body>
    </Page>
  );
}

/** The chosen tool; without one, those that have a file of their own in the repository, and the others behind a button. */
function Columns({
  explanations,
  tool,
  counts,
}: {
  readonly explanations: readonly Explanation[];
  readonly tool: string | undefined;
  /** How many guidelines each format has. */
  readonly counts: Readonly<Record<string, number>>;
}): ReactNode {
  const [hasAll, setAll] = useState(false);
  const chosen = explanations.filter((one) => one.tool === tool);
  const used = explanations.filter((one) => (counts[formatOf(one.tool)] ?? 0) > 0);
  const usual = used.length === 0 || hasAll ? explanations : used;
  const listed = tool === undefined ? usual : chosen;
  const hidden = explanations.length - usual.length;
  return (
    <>
      <div className={tool === undefined ? "grid gap-4 lg:grid-cols-2 xl:grid-cols-3" : ""}>
        {listed.map((one) => (
          <Tool key={one.tool} explanation={one} />
        ))}
      </div>
      {tool !== undefined || hidden === 0 ? null : (
        <p className="flex flex-wrap items-center gap-2 text-soft text-sm">
          {`${hidden} other ${hidden === 1 ? "tool has" : "tools have"} no file of ${hidden === 1 ? "its" : "their"} own here.`}
          <Button variant="quiet" onClick={() => setAll(true)}>
            {hidden === 1 ? "Show it" : "Show them"}
          </Button>
        </p>
      )}
    </>
  );
}

const reasons: Readonly<Record<Explanation["applied"][number]["reason"], string>> = {
  always: "always",
  pattern: "matches",
  nested: "in this folder",
  import: "imported by",
  manual: "only when asked for",
  auto: "when the agent finds it relevant",
};

function Tool({ explanation }: { readonly explanation: Explanation }): ReactNode {
  const { tool, applied, shadowed, tokens, notes } = explanation;
  return (
    <section className="min-w-0 overflow-clip rounded-lg border border-line bg-panel">
      <div className="flex items-baseline gap-2 border-line border-b px-4 py-2">
        <h2 className="font-medium text-sm">{nameOf(tool)}</h2>
        <span className="ml-auto text-soft text-xs tabular">about {tokens.toLocaleString()} tokens</span>
      </div>
      {applied.length === 0 ? (
        <p className="px-4 py-3 text-soft text-sm">This tool reads no rule for the file.</p>
      ) : null}
      <ol className="divide-y divide-line">
        {applied.map((one) => (
          <li key={one.guideline_id} className="flex flex-col gap-0.5 px-4 py-2 text-sm">
            <div className="flex items-baseline gap-2">
              <Link
                to="/console/guidelines/$id"
                params={{ id: one.guideline_id }}
                className="min-w-0 hover:underline foreign"
              >
                {visible(one.title)}
              </Link>
              <span className="ml-auto text-faint text-xs tabular">{one.tokens}</span>
            </div>
            <p className="text-soft text-xs foreign">
              {visible(
                `${reasons[one.reason]}${one.detail === undefined ? "" : ` ${one.detail}`}${one.via === undefined ? "" : `, found as ${one.via}`}`,
              )}
            </p>
            <SourceLink path={one.source_file} line={one.line} />
          </li>
        ))}
        {shadowed.map((one) => (
          <li key={`shadowed ${one.guideline_id}`} className="flex flex-col gap-0.5 px-4 py-2 text-sm">
            <s className="text-soft foreign">{visible(one.title)}</s>
            <p className="text-warn text-xs foreign">
              {visible(`shadowed by ${one.shadowed_by}: ${one.rule}`)}
            </p>
            <SourceLink path={one.source_file} line={one.line} />
          </li>
        ))}
      </ol>
      {notes.map((note) => (
        <p key={note} className="border-line border-t px-4 py-2 text-soft text-xs foreign">
          {visible(note)}
        </p>
      ))}
    </section>
  );
}
