import { Link, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import type { OperationRecord, ReceiptItem, TurnDetail } from "../../../../src/client/index.ts";
import { useServer } from "../../api/use-server.ts";
import { Diff } from "../../ui/diff.tsx";
import { Body, Page, Panel } from "../../ui/page.tsx";
import { Answer, ErrorNotice, Loading, Notice } from "../../ui/states.tsx";
import { Status } from "../../ui/status.tsx";
import { formatCost, formatDuration, formatTokens, visible } from "../../ui/text.ts";
import { itemPlace, readSpans, type Span } from "./trace.ts";
import { useOperation } from "./use-operation.ts";

interface Side {
  readonly record: OperationRecord;
  readonly spans: readonly Span[];
  /** The last turn of the operation itself, with its answer. */
  readonly turn: TurnDetail | undefined;
  readonly answer: string;
}

/** Two operations side by side: answers, time, cost, and the rules in the model's context. */
export function CompareScreen(): ReactNode {
  const { name: agent, id } = useParams({ from: "/console/agents/$name/$id/compare" });
  const { left, right } = useSearch({ from: "/console/agents/$name/$id/compare" });
  const operations = useServer({
    key: ["operations", agent, id, "compare"],
    ask: (client, signal) => client.agents.operations(agent, { id, limit: 1_000 }, { signal }),
    everyMs: 2_000,
  });
  return (
    <Page
      title="Compare"
      crumbs={[
        { label: agent, link: { to: "/console/agents/$name", params: { name: agent } } },
        { label: id, link: { to: "/console/agents/$name/$id", params: { name: agent, id } } },
        { label: "Trace", link: { to: "/console/agents/$name/$id/trace", params: { name: agent, id } } },
      ]}
    >
      <Body>
        <Answer query={operations}>
          {({ operations: list }) => {
            const one = list.find(({ operation_id }) => operation_id === left);
            const other = list.find(({ operation_id }) => operation_id === right);
            if (one === undefined || other === undefined)
              return (
                <Notice icon="branch" title={right === undefined ? "Choose two operations" : "Not begun yet"}>
                  {right === undefined
                    ? "Fork a turn in the trace, or choose another operation there to compare with."
                    : "The second operation waits for its turn, or is not among the last 1,000."}
                </Notice>
              );
            return <Both agent={agent} id={id} records={[one, other]} />;
          }}
        </Answer>
      </Body>
    </Page>
  );
}

function Both({
  agent,
  id,
  records,
}: {
  readonly agent: string;
  readonly id: string;
  readonly records: readonly [OperationRecord, OperationRecord];
}): ReactNode {
  const left = useSide(agent, id, records[0]);
  const right = useSide(agent, id, records[1]);
  const error = left.error ?? right.error;
  if (error !== undefined) return <ErrorNotice error={error} />;
  if (left.side === undefined || right.side === undefined) return <Loading />;
  const sides = [left.side, right.side] as const;
  const answers = sides.map(({ answer }) => answer) as [string, string];
  return (
    <>
      <Panel title="Figures">
        <div className="overflow-x-auto">
          <table className="w-full table-fixed text-sm">
            <thead>
              <tr className="border-line border-b text-left text-soft">
                <th scope="col" className="w-28 px-4 py-2 font-normal sm:w-1/3">
                  <span className="sr-only">Figure</span>
                </th>
                {sides.map(({ record }) => (
                  <th
                    key={record.operation_id}
                    scope="col"
                    className="px-2 py-2 align-bottom font-medium text-ink sm:px-4"
                  >
                    <Link
                      to="/console/agents/$name/$id/trace"
                      params={{ name: agent, id }}
                      search={{ operation: record.operation_id }}
                      className="underline decoration-line-strong hover:decoration-ink"
                    >
                      <bdi>{record.session}</bdi>
                    </Link>
                    {record.forked_from === undefined ? null : (
                      <span className="block font-normal text-faint text-xs">
                        fork of <bdi>{record.forked_from.session}</bdi>
                      </span>
                    )}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {figures.map(([label, read]) => (
                <tr key={label} className="border-line border-b last:border-0">
                  <th scope="row" className="px-4 py-1.5 text-left font-normal text-soft">
                    {label}
                  </th>
                  {sides.map((side) => (
                    <td key={side.record.operation_id} className="px-2 py-1.5 tabular foreign sm:px-4">
                      {read(side)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </Panel>
      <Panel title="Answers">
        <div className="p-3">
          {answers[0] === answers[1] ? (
            <p className="text-soft text-sm">Both answers are identical.</p>
          ) : (
            <Diff path="answer" before={answers[0]} after={answers[1]} />
          )}
        </div>
      </Panel>
      <Panel title="In the model's context">
        <ReceiptDiff left={sides[0].turn?.receipt ?? []} right={sides[1].turn?.receipt ?? []} />
      </Panel>
    </>
  );
}

const figures: readonly (readonly [string, (side: Side) => ReactNode])[] = [
  [
    "State",
    ({ record }) =>
      record.last_index === undefined ? (
        <Status value="working" />
      ) : record.is_error === true ? (
        <Status value="failed" />
      ) : (
        "done"
      ),
  ],
  ["Model", ({ turn }) => (turn === undefined ? "" : visible(turn.model))],
  ["Time", ({ record }) => (record.duration_ms === undefined ? "…" : formatDuration(record.duration_ms))],
  ["Turns", ({ spans }) => spans.filter(({ kind }) => kind === "turn").length],
  ["Calls", ({ spans }) => spans.filter(({ kind }) => kind === "call").length],
  ["Tokens in", ({ record }) => (record.usage === undefined ? "" : formatTokens(record.usage.input))],
  ["Tokens out", ({ record }) => (record.usage === undefined ? "" : formatTokens(record.usage.output))],
  ["Cost", ({ record }) => (record.usage === undefined ? "" : formatCost(record.usage.cost.total))],
  [
    "First word",
    ({ turn }) => (turn?.first_chunk_ms === undefined ? "" : formatDuration(turn.first_chunk_ms)),
  ],
  ["Rules and specs", ({ turn }) => turn?.receipt_count ?? 0],
];

function useSide(
  agent: string,
  id: string,
  record: OperationRecord,
): { readonly side: Side | undefined; readonly error: unknown } {
  const { transcript, error } = useOperation(agent, id, record);
  const { operation_id } = record;
  const spans = useMemo(() => readSpans(transcript, operation_id), [transcript, operation_id]);
  const last = spans.findLast(({ turn }) => turn !== undefined);
  const turn = useServer({
    key: ["turn", agent, id, last?.turn?.id, last?.end],
    ask: (client, signal) =>
      client.agents.turn(
        agent,
        { id, turn_id: last?.turn?.id ?? "", event_index: last?.turn?.eventIndex, limit: 1 },
        { signal },
      ),
    enabled: last !== undefined,
  });
  const isReady = spans.length > 0 && (last === undefined || turn.data !== undefined);
  const streamed = transcript.items.flatMap((item) =>
    item.kind === "text" && item.turn_id === last?.turn?.id ? [item.text] : [],
  );
  const answer = readAnswer(turn.data) ?? streamed.join("");
  return {
    side: isReady ? { record, spans, turn: turn.data, answer } : undefined,
    error: error ?? turn.error ?? undefined,
  };
}

function readAnswer(turn: TurnDetail | undefined): string | undefined {
  return turn?.answer?.content.map(({ type, text }) => (type === "text" ? String(text) : "")).join("");
}

function ReceiptDiff({
  left,
  right,
}: {
  readonly left: readonly ReceiptItem[];
  readonly right: readonly ReceiptItem[];
}): ReactNode {
  const ids = (items: readonly ReceiptItem[]): ReadonlySet<string> => new Set(items.map(({ id }) => id));
  const [before, after] = [ids(left), ids(right)];
  const gone = left.filter(({ id }) => !after.has(id));
  const come = right.filter(({ id }) => !before.has(id));
  if (gone.length === 0 && come.length === 0)
    return <p className="p-4 text-soft text-sm">The same {left.length} rules, specs and instructions.</p>;
  return (
    <ul className="divide-y divide-line">
      {[
        ...gone.map((item) => ({ item, what: "left only", tone: "text-bad" })),
        ...come.map((item) => ({ item, what: "right only", tone: "text-good" })),
      ].map(({ item, what, tone }) => (
        <li key={`${what} ${item.id}`} className="flex items-baseline gap-3 px-4 py-2 text-sm">
          <span className={`w-20 shrink-0 text-xs ${tone}`}>{what}</span>
          <span className="min-w-0 flex-1 truncate font-mono text-xs">
            <bdi>{visible(itemPlace(item))}</bdi>
          </span>
          <span className="text-faint text-xs tabular">{formatTokens(item.tokens)} tokens</span>
        </li>
      ))}
    </ul>
  );
}
