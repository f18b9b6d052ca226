import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Overview } from "../../../../src/client/index.ts";
import { useServer } from "../../api/use-server.ts";
import { Filter } from "../../ui/filter.tsx";
import { Page } from "../../ui/page.tsx";
import { Rows } from "../../ui/rows.tsx";
import { Answer, Loading, Notice } from "../../ui/states.tsx";
import { ProblemRow } from "../specs/problem-row.tsx";
import { GuidelineTabs } from "./guideline-tabs.tsx";

/** Copies that differ, contradictions, globs and links without a file, rules without effect, files that cannot be read. */
export function LintScreen(): ReactNode {
  const { rule } = useSearch({ from: "/console/guidelines/lint" });
  const navigate = useNavigate();
  const lint = useServer({
    key: ["guideline-lint"],
    ask: (client, signal) => client.guidelines.lint({ signal }),
  });
  const overview = useServer({
    key: ["overview"],
    ask: (client, signal) => client.overview({ signal }),
  });
  const rules = [...new Set(lint.data?.map((one) => one.rule))].toSorted();
  return (
    <Page
      title="Lint"
      crumbs={[{ label: "Guidelines", link: { to: "/console/guidelines" } }]}
      isFixed
      tabs={<GuidelineTabs />}
      bar={
        <Filter
          label="Rule"
          value={rule}
          choices={rules}
          onChange={(value) => void navigate({ to: "/console/guidelines/lint", search: { rule: value } })}
        />
      }
    >
      <Answer query={lint}>
        {(all) => {
          const found = all.filter((one) => (rule ?? one.rule) === one.rule);
          return found.length === 0 ? (
            all.length === 0 ? (
              <Nothing overview={overview.data} />
            ) : (
              <Notice icon="check" title="None of this kind">
                Another rule has findings.
              </Notice>
            )
          ) : (
            <>
              <p role="status" className="px-4 py-2 text-faint text-xs tabular sm:px-6">
                {`${found.length.toLocaleString()} ${found.length === 1 ? "finding" : "findings"}. `}
                To leave one out, add its ignore entry to the list{" "}
                <code className="font-mono">[lint] ignore</code> of kit.toml.
              </p>
              <Rows
                label="Findings"
                items={found}
                keyOf={(one) => JSON.stringify([one.path, one.line, one.rule, one.id, one.message])}
              >
                {(one) => (
                  <ProblemRow
                    problem={one}
                    link={one.id === undefined ? undefined : { guideline: one.id }}
                    ignoreEntry={JSON.stringify(`${one.path}: ${one.rule}`)}
                  />
                )}
              </Rows>
            </>
          );
        }}
      </Answer>
    </Page>
  );
}

/** Says why there is no finding. */
function Nothing({ overview }: { readonly overview: Overview | undefined }): ReactNode {
  if (overview === undefined) return <Loading />;
  const { indexing, guidelines_by_source: counts } = overview;
  const guidelines = overview.guidelines - (counts.sample ?? 0);
  if (indexing !== undefined)
    return (
      <Notice icon="wait" title="No finding yet">
        {`The project is being read: ${indexing.done} of ${indexing.total} files.`}
      </Notice>
    );
  if (guidelines === 0)
    return (
      <Notice icon="guidelines" title="No guidelines yet">
        There is no rule to check. Rules are read from CLAUDE.md, AGENTS.md, .cursor/rules, .kiro/steering and
        the files of other tools.
      </Notice>
    );
  return (
    <Notice icon="check" title="No finding">
      {`${guidelines === 1 ? "1 rule was" : `${guidelines.toLocaleString()} rules were`} checked for copies, contradictions, and globs and links without a file.`}
    </Notice>
  );
}
