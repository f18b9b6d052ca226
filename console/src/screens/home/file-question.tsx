import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { FileExplanation } from "../../../../src/client/index.ts";
import { useServer } from "../../api/use-server.ts";
import { BarField } from "../../ui/chips.tsx";
import { Panel } from "../../ui/page.tsx";
import { SourceLink } from "../../ui/source-link.tsx";
import { Answer } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";
import { nameOf } from "../guidelines/tool-names.ts";

type Applied = FileExplanation["explanations"][number]["applied"][number];

const mostRules = 8;

/** A field for a path, answered in place with the rules that apply to it. */
export function FileQuestion(): ReactNode {
  const { file = "" } = useSearch({ from: "/" });
  const navigate = useNavigate({ from: "/" });
  const explanation = useServer({
    key: ["explain", file],
    enabled: file !== "",
    ask: (client, signal) => client.guidelines.explain(file, {}, { signal }),
  });
  return (
    <Panel>
      <div role="search" className="flex flex-wrap items-center gap-x-3 gap-y-2 px-4 py-3">
        <h2 className="font-medium text-sm">Which rules apply to a file?</h2>
        <BarField
          label="A file, such as src/app.ts"
          value={file}
          onSubmit={(text) => void navigate({ search: text === "" ? {} : { file: text }, replace: true })}
        />
      </div>
      {file === "" ? null : (
        <div className="border-line border-t">
          <Answer query={explanation}>
            {({ explanations }) => <Rules file={file} explanations={explanations} />}
          </Answer>
        </div>
      )}
    </Panel>
  );
}

function Rules({
  file,
  explanations,
}: {
  readonly file: string;
  readonly explanations: FileExplanation["explanations"];
}): ReactNode {
  const rules = new Map<string, { readonly rule: Applied; readonly tools: string[] }>();
  for (const { tool, applied } of explanations) {
    for (const rule of applied) {
      const known = rules.get(rule.guideline_id) ?? { rule, tools: [] };
      known.tools.push(nameOf(tool));
      rules.set(rule.guideline_id, known);
    }
  }
  const asked = [...rules.values()].filter(({ rule }) => rule.reason === "manual" || rule.reason === "auto");
  const read = [...rules.values()].filter((one) => !asked.includes(one));
  const links = (
    <span className="flex flex-wrap gap-x-4 gap-y-1 text-sm">
      <Link to="/console/guidelines/explain" search={{ file }} className="text-accent hover:underline">
        By tool, with reasons
      </Link>
      <Link to="/console/specs/impact" search={{ files: file }} className="text-accent hover:underline">
        Specs of this file
      </Link>
    </span>
  );
  return (
    <>
      <div className="flex flex-wrap items-baseline justify-between gap-x-4 gap-y-1 px-4 py-2">
        <p role="status" className="text-sm">
          {read.length === 0
            ? "No rule applies"
            : read.length === 1
              ? "1 rule applies"
              : `${read.length} rules apply`}
          {asked.length === 0 ? "" : `, ${asked.length} more on request`}
        </p>
        {links}
      </div>
      <ul className="divide-y divide-line border-line border-t empty:hidden">
        {read.slice(0, mostRules).map(({ rule, tools }) => (
          <li key={rule.guideline_id} className="flex flex-wrap items-baseline gap-x-3 px-4 py-1.5 text-sm">
            <Link
              to="/console/guidelines/$id"
              params={{ id: rule.guideline_id }}
              className="min-w-0 hover:underline foreign"
            >
              {visible(rule.title)}
            </Link>
            <SourceLink path={rule.source_file} line={rule.line} />
            <span className="ml-auto text-faint text-xs" title={tools.join(", ")}>
              {tools.length > 3 ? `${tools.length} tools` : tools.join(", ")}
            </span>
          </li>
        ))}
        {read.length > mostRules ? (
          <li className="px-4 py-1.5 text-soft text-sm">{`and ${read.length - mostRules} more`}</li>
        ) : null}
      </ul>
    </>
  );
}
