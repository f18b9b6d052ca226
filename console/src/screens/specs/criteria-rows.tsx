import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { CriterionCoverage } from "../../../../src/client/index.ts";
import { Chip } from "../../ui/chips.tsx";
import { ShortMarkdown } from "../../ui/short-markdown.tsx";
import { SourceLink } from "../../ui/source-link.tsx";
import { visible } from "../../ui/text.ts";
import { Age } from "../../ui/time.tsx";
import { resultTones, staleCauses, states } from "./spec-names.ts";

/** Criteria of a block with the tests that name them and the tests' last results. */
export function CriteriaRows({
  criteria,
  marked,
}: {
  readonly criteria: readonly CriterionCoverage[];
  /** The number of the criterion that the address names. */
  readonly marked?: string | undefined;
}): ReactNode {
  return (
    <ul className="divide-y divide-line">
      {criteria.map((criterion) => (
        <li
          key={`${criterion.id} ${criterion.line}`}
          ref={(row) => {
            if (criterion.number === marked) row?.scrollIntoView({ block: "center" });
          }}
          className={criterion.number === marked ? "bg-accent-back" : ""}
        >
          <CriterionRow criterion={criterion} />
        </li>
      ))}
    </ul>
  );
}

export function CriterionRow({ criterion }: { readonly criterion: CriterionCoverage }): ReactNode {
  const { id, number, spec_id, state, stale, text, path, line } = criterion;
  return (
    <div className="flex flex-col gap-2 px-4 py-3 text-sm sm:px-6">
      <div className="flex flex-wrap items-baseline gap-x-3 gap-y-1">
        <Chip tone={states[state].tone}>{states[state].label}</Chip>
        {stale === true ? <Chip tone="warn">stale result</Chip> : null}
        <Link
          to="/console/specs/$id"
          params={{ id: spec_id }}
          search={{ criterion: number }}
          preload={false}
          className="min-w-0 font-mono text-soft text-xs hover:underline foreign"
        >
          {visible(id)}
        </Link>
        <SourceLink path={path} line={line} />
      </div>
      <ShortMarkdown text={text.slice(0, 4_000)} />
      <Tests criterion={criterion} />
    </div>
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
        No test names it. Put <code className="font-mono">{visible(id)}</code> into one
        {like === undefined ? "." : ", such as "}
        {like === undefined ? null : <SourceLink path={like.path} line={like.line} />}
      </p>
    );
  }
  return (
    <ul className="flex flex-col gap-1">
      {tests.map(({ path, line, quote, result, stale = [] }) => (
        <li key={`${path} ${line}`} className="flex flex-wrap items-baseline gap-x-2 gap-y-0.5 text-xs">
          <SourceLink path={path} line={line} />
          {result === undefined ? (
            <Chip tone="warn">never run</Chip>
          ) : (
            <>
              <Chip tone={resultTones[result.status]}>{result.status}</Chip>
              {result.skipped === undefined || result.skipped === result.tests ? null : (
                <span className="text-faint">{`${result.skipped} of ${result.tests} tests`}</span>
              )}
              <span className="text-faint">
                <Age at={result.recorded_at} />
                {`, ${result.source}`}
                {result.commit === undefined ? null : (
                  <code className="font-mono">{` at ${result.commit.slice(0, 8)}${result.dirty === true ? ", changed" : ""}`}</code>
                )}
              </span>
            </>
          )}
          {stale.map((one) => (
            <span key={`${one.cause} ${one.path}`} className="text-warn">
              {`${staleCauses[one.cause]}: `}
              <SourceLink path={one.path} />
            </span>
          ))}
          <span className="w-full truncate text-faint foreign" title={visible(quote)}>
            {visible(quote)}
          </span>
          {result?.message === undefined ? null : (
            <pre
              className="max-h-40 w-full overflow-y-auto whitespace-pre-wrap rounded bg-sunken p-2 font-mono text-bad foreign"
              tabIndex={0}
            >
              {visible(result.message)}
            </pre>
          )}
        </li>
      ))}
    </ul>
  );
}
