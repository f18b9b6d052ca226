import type { ReactNode } from "react";
import type { Verdict } from "../../../../src/client/index.ts";
import { Chip, type Tone } from "../../ui/chips.tsx";
import { ShortMarkdown } from "../../ui/short-markdown.tsx";
import { SourceLink } from "../../ui/source-link.tsx";
import { formatDuration, visible } from "../../ui/text.ts";
import type { PlannedCriterion } from "./spec-tasks.ts";

type Reason = Verdict["reasons"][number];
type Faults = NonNullable<Verdict["criteria"][number]["faults"]>;

const endTones: Readonly<Record<Verdict["end"], Tone>> = {
  closed: "good",
  refused: "bad",
  ask: "warn",
  broken: "bad",
};

const endTexts: Readonly<Record<Verdict["end"], string>> = {
  closed: "Every check passed.",
  refused: "The change does not do what the spec says, or no test shows it.",
  ask: "A person has to decide.",
  broken: "The tests could not be run.",
};

/** The runs of the tests in the order and the words of the docs. */
const runNames: Readonly<Record<Verdict["runs"][number]["name"], string>> = {
  base: "before the change",
  head: "with the change",
  old_tests: "the old tests on the new code",
  again: "once more",
  old_code: "the new tests on the old code",
  respaced: "with other spaces in the code",
  faults: "with a fault in the code",
};

interface VerdictProps {
  readonly verdict: Verdict;
  /** The criteria with their texts, as far as these are known. */
  readonly planned?: readonly PlannedCriterion[];
  /** Stands below the reasons: what a person needs to decide. */
  readonly children?: ReactNode;
}

/** A verdict: how it ended and why, then each criterion with its tests, and what was run. */
export function VerdictView({ verdict, planned = [], children }: VerdictProps): ReactNode {
  const { end, reasons, runs, notes, changed, runner, isolated, duration_ms } = verdict;
  const facts = [
    formatDuration(duration_ms),
    ...(runner === "" ? [] : [runner]),
    ...(runs.length === 0 ? [] : [isolated ? "isolated" : "not isolated"]),
  ];
  return (
    <>
      <div className="flex flex-col gap-2">
        <p className="flex flex-wrap items-baseline gap-x-2 gap-y-1">
          <Chip tone={endTones[end]}>{end}</Chip>
          <span>{endTexts[end]}</span>
          <span className="text-faint text-xs foreign">{visible(facts.join(" · "))}</span>
        </p>
        <Reasons reasons={reasons} />
      </div>
      {children}
      <Criteria planned={planned} verdict={verdict} />
      {runs.length === 0 ? null : (
        <Part title="Runs of the tests">
          <table className="w-full max-w-xl text-xs tabular">
            <thead className="text-faint">
              <tr className="*:py-0.5 *:pr-3 *:font-normal">
                <th className="text-left">Run</th>
                <th className="text-right">Tests</th>
                <th className="text-right">Failed</th>
                <th className="text-right">Time</th>
              </tr>
            </thead>
            <tbody>
              {runs.map(({ name, runs: count, tests, failed, duration_ms: took }) => (
                <tr key={name} className="border-line border-t *:py-1 *:pr-3">
                  <td>
                    {runNames[name]}
                    {count > 1 ? <span className="text-faint"> · {count} times</span> : null}
                  </td>
                  <td className="text-right">{tests.toLocaleString()}</td>
                  <td className="text-right">{failed.toLocaleString()}</td>
                  <td className="whitespace-nowrap text-right">{formatDuration(took)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Part>
      )}
      {notes.length === 0 ? null : (
        <Part title="Notes">
          <ul className="flex list-disc flex-col gap-1 pl-5">
            {notes.map((note) => (
              <li key={note} className="text-soft foreign">
                {visible(note)}
              </li>
            ))}
          </ul>
        </Part>
      )}
      {changed.length === 0 ? null : (
        <Part title="Changed files">
          <ul className="flex flex-col gap-1">
            {changed.map((path) => (
              <li key={path}>
                <SourceLink path={path} />
              </li>
            ))}
          </ul>
        </Part>
      )}
    </>
  );
}

/** The reasons of a verdict: check, sentence and place. */
export function Reasons({ reasons }: { readonly reasons: readonly Reason[] }): ReactNode {
  if (reasons.length === 0) return null;
  return (
    <ul className="flex flex-col gap-2">
      {reasons.map(({ check, end, message, path, line }) => (
        <li
          key={`${check} ${path}:${line} ${message}`}
          className="flex flex-wrap items-baseline gap-x-2 gap-y-1"
        >
          <Chip tone={endTones[end]}>{check}</Chip>
          <span className="min-w-40 flex-1 foreign">{visible(message)}</span>
          {path === undefined ? null : <SourceLink path={path} line={line} />}
        </li>
      ))}
    </ul>
  );
}

/** A part of what a task or a verdict opens to. */
export function Part({
  title,
  children,
}: {
  readonly title: string;
  readonly children: ReactNode;
}): ReactNode {
  return (
    <section className="flex min-w-0 flex-col gap-1.5">
      <h3 className="font-medium text-soft text-xs">{title}</h3>
      {children}
    </section>
  );
}

/** Criteria with their texts, as far as a plan has them; after a verdict with their tests, and what the judge found about them. */
export function Criteria({
  planned,
  verdict,
}: {
  readonly planned: readonly PlannedCriterion[];
  readonly verdict?: Verdict;
}): ReactNode {
  const ids = (verdict?.criteria ?? planned).map(({ id }) => id);
  if (ids.length === 0) return null;
  return (
    <Part title="Criteria">
      <ul className="flex flex-col gap-3">
        {ids.map((id) => (
          <li key={id} className="flex flex-col gap-1 border-line border-l-2 pl-3">
            <CriterionRow id={id} planned={planned.find((one) => one.id === id)} verdict={verdict} />
          </li>
        ))}
      </ul>
    </Part>
  );
}

function CriterionRow({
  id,
  planned,
  verdict,
}: {
  readonly id: string;
  readonly planned: PlannedCriterion | undefined;
  readonly verdict: Verdict | undefined;
}): ReactNode {
  const { tests, text_changed, faults } = verdict?.criteria.find((one) => one.id === id) ?? {};
  const own = verdict?.reasons.filter(({ criterion }) => criterion === id) ?? [];
  const hasPassed = own.length === 0 && (verdict?.end === "closed" || faults !== undefined);
  return (
    <>
      <p className="flex flex-wrap items-baseline gap-x-2 gap-y-1">
        {own.map(({ check, end }) => (
          <Chip key={check} tone={endTones[end]}>
            {check}
          </Chip>
        ))}
        {hasPassed ? <Chip tone="good">passed</Chip> : null}
        <span className="font-mono text-xs foreign">{visible(id)}</span>
        {planned === undefined ? null : <SourceLink path={planned.path} line={planned.line} />}
        {text_changed === true ? <Chip tone="warn">its text changed too</Chip> : null}
      </p>
      {planned === undefined ? null : <ShortMarkdown text={planned.text.slice(0, 4_000)} />}
      {tests?.map(({ path, line, titles }) => (
        <p key={`${path} ${line}`} className="flex flex-wrap items-baseline gap-x-2 text-xs">
          <SourceLink path={path} line={line} />
          <span className="text-soft foreign">{visible(titles.join(" · "))}</span>
        </p>
      ))}
      {faults === undefined ? null : <p className="text-faint text-xs">{describeFaults(faults)}</p>}
    </>
  );
}

function describeFaults({ tried, noticed, crashed, survived, invalid }: Faults): string {
  if (tried === 0) return "No fault could be put into the changed lines.";
  const unread = invalid === 0 ? "" : `, ${invalid} could not be loaded`;
  return `${tried} ${tried === 1 ? "fault was" : "faults were"} put into the changed lines: ${noticed} noticed, ${crashed} crashed, ${survived} survived${unread}`;
}
