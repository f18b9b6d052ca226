import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import type { KitEvent, ReceiptItem, Usage } from "../../../../src/client/index.ts";
import { asked, useClient } from "../../api/use-server.ts";
import { Code } from "../../ui/code.tsx";
import { Facts } from "../../ui/facts.tsx";
import { Icon, type IconName } from "../../ui/icons.tsx";
import { Page, Panel } from "../../ui/page.tsx";
import { ErrorNotice, Notice } from "../../ui/states.tsx";
import { Status } from "../../ui/status.tsx";
import { formatCost, formatDuration, formatTokens, visible } from "../../ui/text.ts";
import { Age } from "../../ui/time.tsx";
import { type Operation, readTrace, type Span } from "./trace.ts";

/** The work of an instance, turn by turn: its time, its tokens, and the rules in front of the model. */
export function TraceScreen(): ReactNode {
  const { name: agent, id } = useParams({ from: "/console/agents/$name/$id/trace" });
  const { operation: chosen, span: chosenSpan } = useSearch({ from: "/console/agents/$name/$id/trace" });
  const navigate = useNavigate({ from: "/console/agents/$name/$id/trace" });
  const { events, error } = useEvents(agent, id);
  const operations = useMemo(() => readTrace(events), [events]);
  const operation = operations.find((one) => one.id === chosen) ?? operations[0];
  const span =
    operation?.spans.find((one) => one.id === chosenSpan) ??
    operation?.spans.find(({ kind }) => kind === "turn") ??
    operation?.spans[0];
  const choose = (search: Readonly<Record<string, string>>) =>
    void navigate({ search: (old) => ({ ...old, ...search }), replace: true });
  return (
    <Page
      title="Trace"
      crumbs={[
        { label: "Agents", link: { to: "/console/agents" } },
        { label: agent, link: { to: "/console/agents/$name", params: { name: agent } } },
        { label: id, link: { to: "/console/agents/$name/$id", params: { name: agent, id } } },
      ]}
    >
      {error !== undefined && operations.length === 0 ? (
        <ErrorNotice error={error} onRetry={() => location.reload()} />
      ) : operation === undefined ? (
        <Notice icon="trace" title="Nothing to see yet">
          Once {agent} is asked something, each turn stands here.{" "}
          <Link to="/console/agents/$name/$id" params={{ name: agent, id }} className="text-accent underline">
            Open the conversation
          </Link>
        </Notice>
      ) : (
        <div className="grid items-start gap-6 px-4 py-5 sm:px-6 xl:grid-cols-[14rem_minmax(0,1fr)_minmax(0,24rem)]">
          <Panel title="Operations" count={operations.length}>
            <ul className="max-h-64 overflow-y-auto xl:max-h-[75dvh]">
              {operations.slice(0, 500).map((one) => (
                <li key={one.id}>
                  <OperationButton
                    operation={one}
                    isChosen={one === operation}
                    onChoose={() => choose({ operation: one.id, span: "" })}
                  />
                </li>
              ))}
            </ul>
          </Panel>
          <Panel title="Timeline">
            <Timeline
              operation={operation}
              chosen={span}
              onChoose={(one) => choose({ operation: operation.id, span: one.id })}
            />
          </Panel>
          {span === undefined ? null : <Details span={span} />}
        </div>
      )}
    </Page>
  );
}

/** All events of an instance, and those that come; shown a few times in a second. */
function useEvents(
  agent: string,
  id: string,
): { readonly events: readonly KitEvent[]; readonly error: unknown } {
  const client = useClient();
  const [events, setEvents] = useState<readonly KitEvent[]>([]);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    const leaving = new AbortController();
    setEvents([]);
    let waiting: KitEvent[] = [];
    const show = (): void => {
      const fresh = waiting;
      waiting = [];
      setEvents((old) => [...old, ...fresh]);
    };
    const read = async (): Promise<void> => {
      for await (const event of client.agents.events(agent, { id }, { signal: leaving.signal })) {
        waiting.push(event);
        if (waiting.length === 1) setTimeout(show, 150);
      }
    };
    asked(client, read).catch((problem: unknown) => leaving.signal.aborted || setError(problem));
    return () => leaving.abort();
  }, [client, agent, id]);
  return { events, error };
}

function OperationButton({
  operation,
  isChosen,
  onChoose,
}: {
  readonly operation: Operation;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}): ReactNode {
  const [root] = operation.spans;
  if (root === undefined) return null;
  return (
    <button
      type="button"
      aria-pressed={isChosen}
      onClick={onChoose}
      className={`flex w-full flex-col gap-0.5 border-line border-b px-4 py-2 text-left text-sm hover:bg-raised ${isChosen ? "bg-raised" : ""}`}
    >
      <span className="w-full truncate">
        <bdi>{visible(root.title.slice(0, 200))}</bdi>
      </span>
      <span className="flex gap-2 text-faint text-xs">
        <Age at={new Date(root.start).toISOString()} />
        {root.end === undefined ? (
          <Status value="working" />
        ) : (
          <span>{formatDuration(root.end - root.start)}</span>
        )}
        {root.isError ? <span className="text-bad">failed</span> : null}
      </span>
    </button>
  );
}

const icons: Readonly<Record<Span["kind"], IconName>> = {
  operation: "agents",
  turn: "brain",
  tool: "tool",
  task: "branch",
  compaction: "down",
};
const bars: Readonly<Record<Span["kind"], string>> = {
  operation: "bg-line-strong",
  turn: "bg-accent",
  tool: "bg-good",
  task: "bg-warn",
  compaction: "bg-warn",
};

function Timeline({
  operation,
  chosen,
  onChoose,
}: {
  readonly operation: Operation;
  readonly chosen: Span | undefined;
  readonly onChoose: (span: Span) => void;
}): ReactNode {
  const start = Math.min(...operation.spans.map((span) => span.start));
  const end = Math.max(...operation.spans.map((span) => span.end ?? Date.now()));
  const whole = Math.max(1, end - start);
  return (
    <ul>
      {operation.spans.slice(0, 2_000).map((span) => {
        const until = span.end ?? end;
        return (
          <li key={span.id} className="[contain-intrinsic-size:auto_2.25rem] [content-visibility:auto]">
            <button
              type="button"
              aria-pressed={span === chosen}
              onClick={() => onChoose(span)}
              className={`grid min-h-9 w-full grid-cols-[minmax(0,1fr)_4.5rem] items-center gap-x-3 px-4 py-1 text-left text-sm hover:bg-raised sm:grid-cols-[minmax(0,1fr)_minmax(0,1fr)_4.5rem] ${span === chosen ? "bg-raised" : ""}`}
            >
              <span
                className="flex min-w-0 items-center gap-2"
                style={{ paddingLeft: `${span.depth * 0.75}rem` }}
              >
                <span className={span.isError ? "text-bad" : "text-faint"}>
                  <Icon name={span.isError ? "warning" : icons[span.kind]} size={14} />
                </span>
                <span className="truncate">
                  <bdi>{visible(span.title.slice(0, 200))}</bdi>
                </span>
                {span.receipt === undefined || span.receipt.length === 0 ? null : (
                  <span
                    className="shrink-0 rounded bg-accent-back px-1 text-accent text-xs"
                    title="Rules and specs in front of the model"
                  >
                    {span.receipt.length}
                  </span>
                )}
              </span>
              <span className="relative hidden h-2 rounded-full bg-sunken sm:block">
                <span
                  className={`absolute inset-y-0 min-w-1 rounded-full ${span.isError ? "bg-bad" : bars[span.kind]}`}
                  style={{
                    left: `${Math.min(99, ((span.start - start) / whole) * 100)}%`,
                    width: `${((until - span.start) / whole) * 100}%`,
                  }}
                />
              </span>
              <span className="text-right text-faint text-xs tabular">
                {span.end === undefined ? "…" : formatDuration(span.end - span.start)}
              </span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}

function Details({ span }: { readonly span: Span }): ReactNode {
  return (
    <div className="flex min-w-0 flex-col gap-6">
      <Panel title={span.kind === "turn" ? "Turn" : span.kind === "tool" ? "Call" : "Operation"}>
        <Facts
          facts={{
            What: visible(span.title.slice(0, 500)),
            Took: span.end === undefined ? "still at it" : formatDuration(span.end - span.start),
            "First word": span.first_chunk_ms === undefined ? undefined : formatDuration(span.first_chunk_ms),
            ...(span.usage === undefined ? {} : usageFacts(span.usage)),
          }}
        />
      </Panel>
      {span.kind === "turn" ? <Receipt items={span.receipt} /> : null}
      {span.input === undefined || span.kind === "operation" ? null : (
        <Panel title="Arguments">
          <div className="p-3">
            <Code value={span.input} label="arguments" />
          </div>
        </Panel>
      )}
      {span.output === undefined || span.output === "" ? null : (
        <Panel title={span.kind === "turn" ? "Answer" : "Result"}>
          <div className="p-3">
            <Code value={span.output} label="result" />
          </div>
        </Panel>
      )}
    </div>
  );
}

function usageFacts({
  input,
  output,
  cache_read,
  cost,
}: Usage): Readonly<Record<string, string | undefined>> {
  const share = input === 0 ? 0 : Math.round((cache_read / input) * 100);
  return {
    Tokens: `${formatTokens(input)} in, ${formatTokens(output)} out`,
    "From the cache": `${share} %`,
    Cost: formatCost(cost.total),
  };
}

/** The rules, specs and other knowledge that stood in front of the model in a turn. */
function Receipt({ items }: { readonly items: readonly ReceiptItem[] | undefined }): ReactNode {
  return (
    <Panel title="In front of the model" count={items?.length}>
      {items === undefined || items.length === 0 ? (
        <p className="p-4 text-soft text-sm">
          {items === undefined ? "This turn has no receipt." : "No rules and no specs."}
        </p>
      ) : (
        <ul className="divide-y divide-line">
          {items.slice(0, 300).map(({ kind, id, file, line, why, tokens }, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: an item may come twice, and stays where it is.
            <li key={at} className="flex flex-col gap-0.5 px-4 py-2 text-sm">
              <span className="flex items-baseline gap-2">
                <span className="shrink-0 text-faint text-xs">{kind}</span>
                <span className="min-w-0 flex-1 truncate font-mono text-xs">
                  <bdi>
                    {visible(file === undefined ? id : `${file}${line === undefined ? "" : `:${line}`}`)}
                  </bdi>
                </span>
                <span className="shrink-0 text-faint text-xs tabular">{formatTokens(tokens)} tokens</span>
              </span>
              <span className="text-soft text-xs foreign">{visible(why)}</span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
