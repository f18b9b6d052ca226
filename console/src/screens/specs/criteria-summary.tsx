import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useServer } from "../../api/use-server.ts";
import { Panel } from "../../ui/page.tsx";

/** The numbers of acceptance criteria by state, each with a link to them. Renders nothing without criteria. */
export function CriteriaSummary(): ReactNode {
  const coverage = useServer({
    key: ["coverage", "summary"],
    ask: (client, signal) => client.specs.coverage({ limit: 1 }, { signal }),
  });
  const totals = coverage.data?.totals;
  if (totals === undefined || totals.criteria === 0) return null;
  const figures = [
    { show: "not_passing", label: "without a passing test", count: totals.criteria - totals.passing },
    { show: "failing", label: "failing", count: totals.failing },
    { show: "uncovered", label: "without a test", count: totals.uncovered },
    { show: "stale", label: "with a stale result", count: totals.stale },
  ];
  return (
    <Panel title="Acceptance criteria" count={totals.criteria}>
      <ul className="grid grid-cols-2 md:grid-cols-4">
        {figures.map(({ show, label, count }) => (
          <li key={show} className="relative flex flex-col px-4 py-3 hover:bg-raised">
            <span className="font-semibold text-lg tabular">{count.toLocaleString()}</span>
            <Link
              to="/console/specs/criteria"
              search={{ show }}
              className="text-soft text-sm after:absolute after:inset-0 hover:underline"
            >
              {label}
            </Link>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
