import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { CriterionCoverage } from "../../../../src/client/index.ts";
import { Chip } from "../../ui/chips.tsx";
import { resultTones, states } from "./spec-names.ts";

/** Criteria with the tests that name them, and how those ended when they last ran. */
export function CriteriaRows({ criteria }: { readonly criteria: readonly CriterionCoverage[] }): ReactNode {
  return (
    <ul className="divide-y divide-line">
      {criteria.map((criterion) => (
        <li key={`${criterion.id} ${criterion.line}`} className="flex flex-col gap-2 px-4 py-3 text-sm">
          <div className="flex items-start gap-3">
            <Chip tone={states[criterion.state].tone}>{states[criterion.state].label}</Chip>
            <div className="min-w-0 flex-1">
              <Link
                to="/console/specs/$id"
                params={{ id: criterion.spec_id }}
                className="font-mono text-soft text-xs hover:underline foreign"
              >
                {criterion.id}
              </Link>
              <p className="foreign">{criterion.text}</p>
            </div>
          </div>
          <Tests criterion={criterion} />
        </li>
      ))}
    </ul>
  );
}

function Tests({
  criterion: { id, tests, suggestions },
}: {
  readonly criterion: CriterionCoverage;
}): ReactNode {
  if (tests.length === 0) {
    const [like] = suggestions;
    return (
      <p className="text-soft text-xs">
        No test names it. Put <code className="font-mono">{id}</code> into one
        {like === undefined ? "." : ", such as "}
        {like === undefined ? null : <bdi className="font-mono foreign">{`${like.path}:${like.line}`}</bdi>}
      </p>
    );
  }
  return (
    <ul className="flex flex-col gap-1">
      {tests.map(({ path, line, quote, result }) => (
        <li key={`${path} ${line}`} className="flex flex-wrap items-baseline gap-x-2 text-xs">
          <bdi className="font-mono text-soft foreign">{`${path}:${line}`}</bdi>
          {result === undefined ? (
            <Chip tone="warn">never run</Chip>
          ) : (
            <Chip tone={resultTones[result.status]}>{result.status}</Chip>
          )}
          <span className="w-full truncate text-faint foreign" title={quote}>
            {quote}
          </span>
          {result?.message === undefined ? null : (
            <pre className="w-full whitespace-pre-wrap rounded bg-sunken p-2 font-mono text-bad foreign">
              {result.message}
            </pre>
          )}
        </li>
      ))}
    </ul>
  );
}
