import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useServer } from "../../api/use-server.ts";
import { Filter } from "../../ui/filter.tsx";
import { Page } from "../../ui/page.tsx";
import { Rows } from "../../ui/rows.tsx";
import { Answer, Notice } from "../../ui/states.tsx";
import { ProblemRow } from "../specs/problem-row.tsx";
import { GuidelineTabs } from "./guideline-tabs.tsx";

/** Duplicates, contradictions, globs without a file, rules that others shadow. */
export function LintScreen(): ReactNode {
  const { rule } = useSearch({ from: "/console/guidelines/lint" });
  const navigate = useNavigate();
  const lint = useServer({
    key: ["guideline-lint"],
    ask: (client, signal) => client.guidelines.lint({ signal }),
  });
  const rules = [...new Set(lint.data?.map((one) => one.rule))].toSorted();
  return (
    <Page
      title="Lint"
      crumbs={[{ label: "Guidelines", link: { to: "/console/guidelines" } }]}
      isFixed
      bar={
        <>
          <GuidelineTabs />
          <Filter
            label="Rule"
            value={rule}
            choices={rules}
            onChange={(value) => void navigate({ to: "/console/guidelines/lint", search: { rule: value } })}
          />
        </>
      }
    >
      <Answer query={lint}>
        {(all) => {
          const found = all.filter((one) => (rule ?? one.rule) === one.rule);
          return found.length === 0 ? (
            <Notice icon="check" title="The rules agree">
              No duplicate, no contradiction, no pattern without a file.
            </Notice>
          ) : (
            <>
              <p role="status" className="px-4 py-2 text-faint text-xs tabular sm:px-6">
                {`${found.length.toLocaleString()} ${found.length === 1 ? "finding" : "findings"}`}
              </p>
              <Rows
                label="Findings"
                items={found}
                keyOf={(one) => JSON.stringify([one.path, one.line, one.rule, one.id, one.message])}
              >
                {(one) => (
                  <ProblemRow problem={one} link={one.id === undefined ? undefined : { guideline: one.id }} />
                )}
              </Rows>
            </>
          );
        }}
      </Answer>
    </Page>
  );
}
