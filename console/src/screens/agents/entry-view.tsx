import { memo, type ReactNode, useId, useState } from "react";
import { type ApprovalRequest, type EventError, explainError } from "../../../../src/client/index.ts";
import { useServer } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Decision } from "../../ui/decision.tsx";
import { Icon } from "../../ui/icons.tsx";
import { Markdown } from "../../ui/markdown.tsx";
import { Loading } from "../../ui/states.tsx";
import { Status } from "../../ui/status.tsx";
import { formatCost, formatDuration, formatTokens, visible } from "../../ui/text.ts";
import { useNow } from "../../ui/time.tsx";
import { CallContent, callTitle, WaitingCall } from "../../ui/tool-call.tsx";
import type { CallEntry, Entry, PastEnd, Picture } from "./conversation.ts";

interface EntryProps {
  readonly entry: Entry;
  readonly agent: string;
  readonly instance: string;
  /** Sends the message of a failed operation again; undefined if it cannot. */
  readonly onRetry?: ((operation_id: string) => void) | undefined;
}

/** One entry of a conversation. It is rendered again only when it has changed. */
export const EntryView = memo(function EntryView({ entry, agent, instance, onRetry }: EntryProps): ReactNode {
  switch (entry.kind) {
    case "user":
      return (
        <div className="ml-auto flex max-w-[85%] flex-col items-end gap-2">
          <Pictures pictures={entry.pictures} />
          {entry.text === "" ? null : (
            <div
              className="whitespace-pre-wrap rounded-2xl rounded-br-md bg-accent-back px-3.5 py-2 foreign"
              dir="auto"
            >
              {visible(entry.text.slice(0, 50_000))}
            </div>
          )}
        </div>
      );
    case "kit":
      return (
        <Fold icon="guidelines" title={`kit added: ${entry.source}`}>
          <Markdown text={entry.text} />
        </Fold>
      );
    case "thinking":
      return (
        <Fold icon="brain" title={entry.is_open ? "Thinking…" : "Thought"}>
          <Markdown text={entry.text} />
        </Fold>
      );
    case "text":
      return <Markdown text={entry.text} />;
    case "call":
      return <CallView entry={entry} agent={agent} instance={instance} />;
    case "task":
      return (
        <Fold
          icon="branch"
          title={`Task for ${entry.label}`}
          aside={<Status value={workNames[entry.state]} tone={workTones[entry.state]} />}
        >
          <Markdown text={entry.prompt} />
        </Fold>
      );
    case "compaction":
      return entry.state !== "done" ? null : (
        <Note icon="wait">
          History shortened: {entry.tokens_before.toLocaleString()} tokens became{" "}
          {entry.tokens_after?.toLocaleString()}
        </Note>
      );
    case "gap":
      return <Note icon="warning">Older events were removed.</Note>;
    case "retry":
      return <Retry entry={entry} />;
    case "end":
      return <End entry={entry} onRetry={onRetry} />;
  }
});

const workTones = { running: "busy", waiting: "warn", done: "good", failed: "bad", stopped: "none" } as const;
const workNames = {
  running: "running",
  waiting: "waiting for you",
  done: "done",
  failed: "failed",
  stopped: "no result",
} as const;

function Note({
  icon,
  children,
}: {
  readonly icon: "wait" | "warning";
  readonly children: ReactNode;
}): ReactNode {
  return (
    <p className="flex items-start gap-2 rounded-md bg-sunken px-3 py-2 text-soft text-sm">
      <Icon name={icon} />
      <span className="min-w-0">{children}</span>
    </p>
  );
}

/** An attempt that failed: one line, which changes with the attempts. */
function Retry({ entry }: { readonly entry: Extract<Entry, { readonly kind: "retry" }> }): ReactNode {
  const { error, attempt, retry_in_ms, next_model, has_begun, started_at } = entry;
  const now = useNow();
  const seconds = Math.ceil((Date.parse(started_at) + retry_in_ms - now) / 1_000);
  const next =
    next_model !== undefined
      ? `Asking ${next_model}`
      : has_begun || seconds <= 0
        ? "Trying again"
        : `Trying again in ${seconds} s`;
  return (
    <p className="flex items-start gap-2 rounded-md bg-warn-back px-3 py-2 text-sm text-warn foreign">
      <Icon name="retry" />
      <span className="min-w-0">
        {`${next} (attempt ${attempt}) · `}
        {visible(explainError(error))}
      </span>
    </p>
  );
}

const endNames = { done: "Done", failed: "Failed", stopped: "Stopped" } as const;

function End({
  entry: { operation_id, state, attempts, error, duration_ms, tokens, cost },
  onRetry,
}: Pick<EntryProps, "onRetry"> & { readonly entry: PastEnd }): ReactNode {
  const figures = (
    <>
      {duration_ms === undefined ? null : <span>{formatDuration(duration_ms)}</span>}
      {tokens === undefined ? null : <span>{formatTokens(tokens)} tokens</span>}
      {tokens === undefined || cost === null ? null : <span>{formatCost(cost)}</span>}
    </>
  );
  if (state !== "failed")
    return (
      <p className="flex flex-wrap items-center gap-x-3 border-line border-b pb-4 text-faint text-xs tabular">
        <span>{endNames[state]}</span>
        {figures}
      </p>
    );
  return (
    <div role="alert" className="flex flex-col gap-2 rounded-md bg-bad-back px-3 py-2.5 text-sm">
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <span className="flex items-center gap-2 font-medium text-bad">
          <Icon name="warning" />
          {attempts > 1 ? `Failed after ${attempts} attempts` : "Failed"}
        </span>
        <span className="flex gap-x-3 text-soft text-xs tabular">{figures}</span>
        {onRetry === undefined ? null : (
          <span className="ml-auto">
            <Button icon="retry" onClick={() => onRetry(operation_id)}>
              Retry
            </Button>
          </span>
        )}
      </p>
      {error === undefined ? null : <ErrorWords error={error} />}
    </div>
  );
}

/** The words of the provider or of the code that threw; without them, kit's own. */
function ErrorWords({ error }: { readonly error: EventError }): ReactNode {
  const words = explainError(error);
  return (
    <div className="foreign">
      <p className="whitespace-pre-wrap">{visible(words)}</p>
      {words === error.message ? null : <p className="text-soft text-xs">{visible(error.message)}</p>}
    </div>
  );
}

function CallView({
  entry,
  agent,
  instance,
}: {
  readonly entry: CallEntry;
  readonly agent: string;
  readonly instance: string;
}): ReactNode {
  const { tool, args, state, result, progress, duration_ms, approval_id, decision, waited_ms } = entry;
  const aside = (
    <>
      {duration_ms === undefined ? null : (
        <span className="text-faint text-xs tabular">{formatDuration(duration_ms)}</span>
      )}
      <Status value={workNames[state]} tone={workTones[state]} />
    </>
  );
  const isOpen = state === "waiting" || tool === "edit" || tool === "write";
  return (
    <div className="flex flex-col gap-2">
      <Fold
        // A waiting call opens, also if it was closed while it ran.
        key={state === "waiting" ? "waiting" : "call"}
        icon={tool === "bash" ? "terminal" : "tool"}
        title={callTitle(tool, args)}
        aside={aside}
        isOpen={isOpen}
        isCode
      >
        <div className="flex flex-col gap-2">
          {approval_id === undefined ? (
            <CallContent
              tool={tool}
              args={args}
              progress={progress}
              result={result}
              isError={state === "failed"}
            />
          ) : (
            <Waiting call={{ agent, instance_id: instance, approval_id, tool, args }} />
          )}
          <Pictures pictures={entry.pictures ?? []} />
        </div>
      </Fold>
      {decision === undefined ? null : (
        <p className="pl-3 text-soft text-xs foreign">
          {decision.approved ? "Approved" : "Denied"}
          {decision.by === undefined ? "" : ` by ${visible(decision.by)}`}
          {waited_ms === undefined ? "" : ` after ${formatDuration(waited_ms)}`}
          {decision.reason === undefined ? "" : `: ${visible(decision.reason)}`}
        </p>
      )}
    </div>
  );
}

type KnownCall = Pick<ApprovalRequest, "agent" | "instance_id" | "approval_id" | "tool" | "args">;

/** The change that a waiting call would make, and its decision. */
function Waiting({ call }: { readonly call: KnownCall }): ReactNode {
  const { agent, instance_id, approval_id } = call;
  // Its record says which files it touches, whether its arguments may be changed, and whether a rule could allow it.
  const record = useServer({
    key: ["approvals", "call", approval_id],
    ask: async (client, signal) => {
      const query = { agent, instance_id, limit: 1_000 };
      const { approvals } = await client.approvals.list(query, { signal });
      return approvals.find((one) => one.approval_id === approval_id) ?? null;
    },
  });
  const known = record.data ?? call;
  if (record.isPending) return <Loading rows={3} />;
  return (
    <>
      <WaitingCall call={known} />
      <Decision call={known} />
    </>
  );
}

interface FoldProps {
  readonly icon: "brain" | "tool" | "terminal" | "guidelines" | "branch";
  readonly title: string;
  readonly aside?: ReactNode;
  readonly isOpen?: boolean;
  readonly isCode?: boolean;
  readonly children: ReactNode;
}

/** A box that opens. Its content is rendered only while it is open: a long conversation has thousands of closed ones. */
function Fold({ icon, title, aside, isOpen = false, isCode = false, children }: FoldProps): ReactNode {
  const [isOpened, setOpened] = useState(isOpen);
  const content = useId();
  return (
    <div className="min-w-0 rounded-lg border border-line bg-panel">
      <button
        type="button"
        aria-expanded={isOpened}
        aria-controls={isOpened ? content : undefined}
        onClick={() => setOpened(!isOpened)}
        className="flex min-h-9 w-full items-center gap-2 px-3 py-1.5 text-left text-sm"
      >
        <span className="text-faint">
          <Icon name={icon} />
        </span>
        <span className={`min-w-0 flex-1 truncate text-soft ${isCode ? "font-mono text-xs" : ""}`}>
          <bdi>{visible(title.slice(0, 300))}</bdi>
        </span>
        {aside}
        <span className={`text-faint transition-transform ${isOpened ? "rotate-90" : ""}`}>
          <Icon name="chevron" size={14} />
        </span>
      </button>
      {isOpened ? (
        <div id={content} className="border-line border-t p-3 text-sm">
          {children}
        </div>
      ) : null}
    </div>
  );
}

const previewTypes = /^image\/(png|jpeg|gif|webp|avif)$/;

function Pictures({ pictures }: { readonly pictures: readonly Picture[] }): ReactNode {
  return pictures.map(({ data, media_type }, at) =>
    previewTypes.test(media_type) && !data.startsWith("http") ? (
      <img
        // biome-ignore lint/suspicious/noArrayIndexKey: images have no other identity.
        key={at}
        src={`data:${media_type};base64,${data}`}
        alt="Attached"
        className="max-h-72 max-w-full rounded-md border border-line"
      />
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: images have no other identity.
      <span key={at} className="text-soft text-sm foreign">
        [picture {visible(data.startsWith("http") ? data : media_type)}]
      </span>
    ),
  );
}
