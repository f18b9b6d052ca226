import { Link, type LinkProps } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { CoveragePage, CriterionCoverage } from "../../../../src/client/index.ts";
import { useServer } from "../../api/use-server.ts";
import { readPlain } from "../../ui/inline-markdown.ts";
import { Panel } from "../../ui/page.tsx";
import { visible } from "../../ui/text.ts";

const mostCriteria = 6;
const tones = { good: "bg-good", warn: "bg-warn", bad: "bg-bad", none: "bg-line-strong" } as const;

/** Findings of the doctor about what the other rows count. */
const countedElsewhere: ReadonlySet<string> = new Set(["spec problems"]);

/** The faults of the repository, each with the screen that shows how to mend it, and the criteria without a test by name. */
export function RepositoryState(): ReactNode {
  const coverage = useServer({
    key: ["coverage", "home"],
    ask: (client, signal) => client.specs.coverage({ show: "uncovered", limit: mostCriteria }, { signal }),
    everyMs: 60_000,
  });
  const problems = useServer({
    key: ["diagnostics", "home"],
    ask: (client, signal) => client.specs.diagnosticPage({ limit: 1 }, { signal }),
    everyMs: 60_000,
  });
  const lint = useServer({
    key: ["guideline-lint"],
    ask: (client, signal) => client.guidelines.lint({ signal }),
    everyMs: 60_000,
  });
  const server = useServer({
    key: ["server"],
    ask: (client, signal) => client.server({ signal }),
    everyMs: 60_000,
  });
  const totals = coverage.data?.totals;
  const { error = 0, warning = 0 } = problems.data?.counts_by_severity ?? {};
  const findings = (server.data?.findings ?? []).filter(
    ({ name, status }) => status !== "ok" && !countedElsewhere.has(name),
  );
  const hasErrors = findings.some(({ status }) => status === "error");
  const rules = lint.data;
  return (
    <Panel title="The repository">
      <ul className="divide-y divide-line">
        <Row
          label="Criteria without a passing test"
          link={{ to: "/console/specs/criteria", search: { show: "not_passing" } }}
          tone={
            totals === undefined
              ? "none"
              : totals.failing > 0
                ? "bad"
                : totals.passing < totals.criteria
                  ? "warn"
                  : "good"
          }
          text={
            totals &&
            `${(totals.criteria - totals.passing).toLocaleString()} of ${totals.criteria.toLocaleString()}`
          }
          detail={totals && describeTotals(totals)}
        />
        <Row
          label="Problems of specs"
          link={{ to: "/console/specs/problems" }}
          tone={problems.data === undefined ? "none" : error > 0 ? "bad" : warning > 0 ? "warn" : "good"}
          text={problems.data && countBoth(error, warning)}
        />
        <Row
          label="Findings in rules"
          link={{ to: "/console/guidelines/lint" }}
          tone={rules === undefined ? "none" : rules.length > 0 ? "warn" : "good"}
          text={rules?.length.toLocaleString()}
        />
        {server.isError ? null : (
          <Row
            label="Findings about this server"
            link={{ to: "/console/server" }}
            tone={
              server.data === undefined ? "none" : hasErrors ? "bad" : findings.length > 0 ? "warn" : "good"
            }
            text={server.data && findings.length.toLocaleString()}
            detail={findings.map(({ name, message }) => `${name}: ${message}`)[0]}
          />
        )}
      </ul>
      <Uncovered criteria={coverage.data?.criteria ?? []} total={totals?.uncovered ?? 0} />
    </Panel>
  );
}

function describeTotals({ failing, uncovered }: CoveragePage["totals"]): string {
  return [
    failing === 0 ? [] : `${failing.toLocaleString()} fail`,
    uncovered === 0 ? [] : `${uncovered.toLocaleString()} without a test`,
  ]
    .flat()
    .join(", ");
}

function countBoth(errors: number, warnings: number): string {
  if (errors + warnings === 0) return "0";
  return `${errors.toLocaleString()} ${errors === 1 ? "error" : "errors"}, ${warnings.toLocaleString()} ${warnings === 1 ? "warning" : "warnings"}`;
}

/** A line of the state, with the same height before its number is there. */
function Row({
  label,
  link,
  tone,
  text,
  detail,
}: {
  readonly label: string;
  readonly link: LinkProps;
  readonly tone: keyof typeof tones;
  readonly text: string | undefined;
  readonly detail?: string | undefined;
}): ReactNode {
  return (
    <li className="relative flex min-h-10 items-center gap-3 px-4 text-sm hover:bg-raised">
      <span aria-hidden="true" className={`size-2 shrink-0 rounded-full ${tones[tone]}`} />
      <Link {...link} className="shrink-0 after:absolute after:inset-0 hover:underline">
        {label}
      </Link>
      <span className="min-w-0 truncate text-faint text-xs">
        {detail === undefined ? "" : visible(detail)}
      </span>
      <span className="ml-auto shrink-0 font-medium tabular">{text ?? "…"}</span>
    </li>
  );
}

function Uncovered({
  criteria,
  total,
}: {
  readonly criteria: readonly CriterionCoverage[];
  readonly total: number;
}): ReactNode {
  if (criteria.length === 0) return null;
  return (
    <div className="border-line border-t px-4 py-3">
      <h3 className="pb-1 text-soft text-xs">No test names these</h3>
      <ul className="flex flex-col">
        {criteria.map(({ id, spec_id, number, text, line }) => (
          <li key={`${id} ${line}`} className="flex min-w-0 items-baseline gap-2 text-sm">
            <span className="shrink-0 font-mono text-faint text-xs">{visible(id)}</span>
            <Link
              to="/console/specs/$id"
              params={{ id: spec_id }}
              search={{ criterion: number }}
              preload={false}
              className="min-w-0 truncate py-1 hover:underline foreign"
            >
              {visible(readPlain(text).slice(0, 300))}
            </Link>
          </li>
        ))}
        {total > criteria.length ? (
          <li className="pt-1 text-soft text-xs">{`and ${(total - criteria.length).toLocaleString()} more`}</li>
        ) : null}
      </ul>
    </div>
  );
}
