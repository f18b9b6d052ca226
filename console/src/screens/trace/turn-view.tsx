import { useInfiniteQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import type { PromptMessage, ReceiptItem, TurnDetail } from "../../../../src/client/index.ts";
import { isReadOnly } from "../../api/server.ts";
import { asked, useClient } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Chip, Choice } from "../../ui/chips.tsx";
import { LongText } from "../../ui/long-text.tsx";
import { Panel } from "../../ui/page.tsx";
import { ErrorNotice, Loading } from "../../ui/states.tsx";
import { formatTokens, toReadable, visible } from "../../ui/text.ts";
import { ForkForm } from "./fork-form.tsx";
import { itemPlace } from "./trace.ts";

type Part = "receipt" | "prompt" | "answer" | "tools" | "settings";

/** A turn as it was sent to the model: its prompt and its answer. */
export function TurnView({
  agent,
  id,
  turnId,
  eventIndex,
  isRunning,
}: {
  readonly agent: string;
  readonly id: string;
  readonly turnId: string;
  readonly eventIndex: number;
  readonly isRunning: boolean;
}): ReactNode {
  const client = useClient();
  const [chosen, choose] = useState<Part>();
  const turn = useInfiniteQuery({
    queryKey: ["turn", agent, id, turnId, eventIndex, isRunning],
    queryFn: ({ pageParam, signal }) =>
      asked(client, () =>
        client.agents.turn(
          agent,
          { id, turn_id: turnId, event_index: eventIndex, limit: 50, before: pageParam },
          { signal },
        ),
      ),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: (page) => page.next_before,
  });
  const [first] = turn.data?.pages ?? [];
  if (first === undefined)
    return turn.isError ? (
      <ErrorNotice error={turn.error} onRetry={() => void turn.refetch()} />
    ) : (
      <Loading rows={4} />
    );
  // A turn of a compaction gets no rules.
  const part = chosen ?? (first.purpose === "compaction" ? "prompt" : "receipt");
  const messages = [...(turn.data?.pages ?? [])].reverse().flatMap((page) => page.messages);
  return (
    <Panel
      title="What the model was sent"
      actions={
        isReadOnly || first.purpose !== "agent" ? null : <ForkForm agent={agent} id={id} turn={first} />
      }
    >
      <div className="border-line border-b px-4 py-2">
        <Choice
          label="Part of the turn"
          value={part}
          choices={[
            { value: "receipt", label: "In the model's context", count: first.receipt_count ?? 0 },
            { value: "prompt", label: "Prompt", count: first.message_count },
            { value: "answer", label: "Answer" },
            { value: "tools", label: "Tools", count: first.tools?.length ?? 0 },
            { value: "settings", label: "Settings" },
          ]}
          onChoose={choose}
        />
      </div>
      {first.missing === undefined ? null : (
        <p className="border-line border-b px-4 py-2 text-sm text-warn">
          {whyMissing(first.missing, first.purpose)}
        </p>
      )}
      {part === "receipt" ? (
        <>
          {first.left_out === undefined ? null : (
            <p className="border-line border-b px-4 py-2 text-sm text-warn foreign">
              This session leaves out {visible(first.left_out.join(", "))}.
            </p>
          )}
          <Receipt items={first.receipt} count={first.receipt_count ?? 0} purpose={first.purpose} />
        </>
      ) : null}
      {part === "prompt" ? (
        <Messages
          messages={messages}
          onEarlier={turn.hasNextPage ? () => void turn.fetchNextPage() : undefined}
          isBusy={turn.isFetching}
        />
      ) : null}
      {part === "answer" ? <Answered turn={first} isRunning={isRunning} /> : null}
      {part === "tools" ? <Tools tools={first.tools} /> : null}
      {part === "settings" ? (
        <div className="p-3">
          <LongText value={first.settings ?? {}} label="settings" />
        </div>
      ) : null}
    </Panel>
  );
}

function Messages({
  messages,
  onEarlier,
  isBusy,
}: {
  readonly messages: TurnDetail["messages"];
  readonly onEarlier: (() => void) | undefined;
  readonly isBusy: boolean;
}): ReactNode {
  if (messages.length === 0)
    return <p className="p-4 text-soft text-sm">The messages are no longer stored.</p>;
  return (
    <div className="flex flex-col gap-4 p-3">
      {onEarlier === undefined ? null : (
        <Button variant="quiet" isBusy={isBusy} onClick={onEarlier}>
          Show earlier messages
        </Button>
      )}
      {messages.map((message) => (
        <MessageView key={message.position} message={message} position={message.position} />
      ))}
    </div>
  );
}

function MessageView({
  message: { role, content },
  position,
}: {
  readonly message: PromptMessage;
  readonly position?: number;
}): ReactNode {
  const label = position === undefined ? role : `message ${position}, ${role}`;
  return (
    <section aria-label={label} className="flex min-w-0 flex-col gap-1.5">
      <p className="flex items-center gap-2 text-faint text-xs">
        {position === undefined ? null : <span className="tabular">{position}</span>}
        <Chip tone={role === "system" ? "warn" : "plain"}>{role}</Chip>
      </p>
      {content.map((part, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: parts have no other identity, and do not move.
        <PartView key={at} part={part} label={label} />
      ))}
    </section>
  );
}

function PartView({
  part,
  label,
}: {
  readonly part: PromptMessage["content"][number];
  readonly label: string;
}): ReactNode {
  if (part.type === "text") return <LongText value={String(part.text ?? "")} label={label} />;
  if (part.type === "reasoning")
    return (
      <details>
        <summary className="cursor-pointer text-soft text-sm">Thought</summary>
        <LongText value={String(part.text ?? "")} label={`${label}, thought`} />
      </details>
    );
  if (part.type === "tool_call")
    return (
      <>
        <p className="font-mono text-xs foreign">call of {visible(String(part.tool))}</p>
        <LongText value={part.args} label={`${label}, arguments`} />
      </>
    );
  if (part.type === "tool_result" && Array.isArray(part.content))
    return (
      <>
        <p className={`font-mono text-xs foreign ${part.is_error === true ? "text-bad" : ""}`}>
          result of {visible(String(part.tool))}
        </p>
        {part.content.map((item: PromptMessage["content"][number], at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: as above.
          <PartView key={at} part={item} label={`${label}, result`} />
        ))}
      </>
    );
  if (part.type === "image" || part.type === "file")
    return (
      <p className="rounded-md border border-line bg-sunken p-3 text-soft text-sm foreign">
        {visible(`${part.type} ${String(part.media_type ?? "")} ${String(part.filename ?? "")}`)}
        {typeof part.data === "string"
          ? part.data.startsWith("https:")
            ? ` ${visible(part.data.slice(0, 300))}`
            : `, ${formatTokens(Math.round(part.data.length * 0.75))} bytes`
          : null}
      </p>
    );
  return <LongText value={toReadable(part)} label={label} />;
}

const partNames = {
  system: "the system prompt",
  tools: "the tools",
  messages: "the messages",
  answer: "the answer",
} as const;

/** A sentence that says why parts of a turn cannot be shown. */
function whyMissing(missing: NonNullable<TurnDetail["missing"]>, purpose: TurnDetail["purpose"]): string {
  const names = missing.map((name) => partNames[name]).join(", ");
  const reason =
    purpose === "compaction"
      ? "This turn shortened the history more than 30 days ago, or by an older version of kit, or the store keeps no prompts"
      : "Parts that no turn has used for 30 days are removed, and some stores keep none";
  return `Not kept: ${names}. ${reason}.`;
}

function Answered({
  turn,
  isRunning,
}: {
  readonly turn: TurnDetail;
  readonly isRunning: boolean;
}): ReactNode {
  return (
    <div className="flex flex-col gap-3 p-3">
      {(turn.errors ?? []).map(({ error, will_retry }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: one for each attempt, in order.
        <p key={at} className="rounded-md bg-bad-back p-3 text-bad text-sm foreign">
          {visible(error.message)}
          {will_retry ? " It was tried again." : ""}
        </p>
      ))}
      {turn.answer === undefined ? (
        <p className="text-soft text-sm">
          {turn.missing?.includes("answer")
            ? "The answer is no longer kept."
            : isRunning
              ? "There is no answer yet."
              : "The model gave no answer."}
        </p>
      ) : (
        <MessageView message={turn.answer} />
      )}
      {turn.finish_reason === undefined ? null : (
        <p className="text-faint text-xs">It ended with: {turn.finish_reason}.</p>
      )}
    </div>
  );
}

function Tools({ tools }: { readonly tools: TurnDetail["tools"] }): ReactNode {
  if (tools === undefined || tools.length === 0) return <p className="p-4 text-soft text-sm">No tools.</p>;
  return (
    <ul className="divide-y divide-line">
      {tools.map(({ name, description, input_schema }) => (
        <li key={name}>
          <details className="px-4 py-2 text-sm">
            <summary className="cursor-pointer">
              <span className="font-mono foreign">{visible(name)}</span>
              <span className="block truncate pl-4 text-soft text-xs">
                {visible((description ?? "").slice(0, 200))}
              </span>
            </summary>
            <div className="flex flex-col gap-2 pt-2">
              <LongText value={description ?? ""} label={`description of ${name}`} />
              <LongText value={input_schema} label={`schema of ${name}`} />
            </div>
          </details>
        </li>
      ))}
    </ul>
  );
}

const firstItems = 100;

/** The rules, specs and other items in the model's context in a turn. */
function Receipt({
  items,
  count,
  purpose,
}: {
  readonly items: readonly ReceiptItem[] | undefined;
  readonly count: number;
  readonly purpose: TurnDetail["purpose"];
}): ReactNode {
  const [limit, setLimit] = useState(firstItems);
  if (items === undefined || items.length === 0)
    return (
      <p className="p-4 text-soft text-sm">
        {items !== undefined
          ? "No rules and no specs."
          : purpose === "compaction"
            ? "This turn shortened the history: the model was shown the conversation, and no rules."
            : "This turn has no receipt."}
      </p>
    );
  return (
    <>
      <ul className="divide-y divide-line">
        {items.slice(0, limit).map(({ kind, id, file, line, why, tokens }, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: an item can occur twice, and does not move.
          <li key={at} className="flex flex-col gap-0.5 px-4 py-2 text-sm">
            <span className="flex items-baseline gap-2">
              <span className="shrink-0 text-faint text-xs">{kind}</span>
              <span className="min-w-0 flex-1 truncate font-mono text-xs">
                <bdi>{visible(itemPlace({ id, file, line }))}</bdi>
              </span>
              <span className="shrink-0 text-faint text-xs tabular">{formatTokens(tokens)} tokens</span>
            </span>
            <span className="text-soft text-xs foreign">{visible(why)}</span>
          </li>
        ))}
      </ul>
      {items.length > limit ? (
        <div className="border-line border-t p-2">
          <Button variant="quiet" onClick={() => setLimit(limit + 500)}>
            Show {Math.min(500, items.length - limit)} of {items.length - limit} more
          </Button>
        </div>
      ) : null}
      {count > items.length ? (
        <p className="border-line border-t px-4 py-2 text-soft text-sm">
          {count - items.length} more items are counted and not listed: a turn lists at most 200 new ones.
        </p>
      ) : null}
    </>
  );
}
