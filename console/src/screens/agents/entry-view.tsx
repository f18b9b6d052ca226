import { Collapsible } from "@base-ui/react/collapsible";
import { memo, type ReactNode } from "react";
import { Decision } from "../../ui/decision.tsx";
import { Icon } from "../../ui/icons.tsx";
import { Markdown } from "../../ui/markdown.tsx";
import { Status } from "../../ui/status.tsx";
import { formatCost, formatDuration, formatTokens, visible } from "../../ui/text.ts";
import { CallContent, callTitle } from "../../ui/tool-call.tsx";
import type { Entry, Picture, ToolEntry } from "./conversation.ts";

interface EntryProps {
  readonly entry: Entry;
  readonly agent: string;
  readonly instance: string;
}

/** One entry of a conversation. It is rendered again only when it has changed. */
export const EntryView = memo(function EntryView({ entry, agent, instance }: EntryProps): ReactNode {
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
        <Fold icon="brain" title={entry.isOpen ? "Thinking…" : "Thought"}>
          <Markdown text={entry.text} />
        </Fold>
      );
    case "text":
      return <Markdown text={entry.text} />;
    case "tool":
      return <ToolView entry={entry} agent={agent} instance={instance} />;
    case "task":
      return (
        <Fold
          icon="branch"
          title={`Task for ${entry.label}`}
          aside={<Status value={entry.state} tone={taskTones[entry.state]} />}
        >
          <Markdown text={entry.prompt} />
        </Fold>
      );
    case "notice":
      return (
        <p
          role={entry.tone === "bad" ? "alert" : undefined}
          className={`flex items-start gap-2 rounded-md px-3 py-2 text-sm foreign ${noticeStyles[entry.tone]}`}
        >
          <Icon name={entry.tone === "none" ? "wait" : "warning"} />
          <span className="min-w-0">{visible(entry.text)}</span>
        </p>
      );
    case "end":
      return (
        <p className="flex flex-wrap items-center gap-x-3 border-line border-b pb-4 text-faint text-xs tabular">
          <span className={entry.label === "Failed" ? "text-bad" : ""}>{entry.label}</span>
          <span>{formatDuration(entry.duration_ms)}</span>
          {entry.tokens === undefined ? null : <span>{formatTokens(entry.tokens)} tokens</span>}
          {entry.tokens === undefined || entry.cost === null ? null : <span>{formatCost(entry.cost)}</span>}
        </p>
      );
  }
});

const taskTones = { running: "busy", done: "good", failed: "bad" } as const;
const noticeStyles = {
  bad: "bg-bad-back text-bad",
  warn: "bg-warn-back text-warn",
  none: "bg-sunken text-soft",
} as const;
const toolTones = { running: "busy", waiting: "warn", done: "good", failed: "bad", unknown: "none" } as const;

function ToolView({
  entry,
  agent,
  instance,
}: {
  readonly entry: ToolEntry;
  readonly agent: string;
  readonly instance: string;
}): ReactNode {
  const { tool, args, state, result, progress, duration_ms, approval_id, decision } = entry;
  const aside = (
    <>
      {duration_ms === undefined ? null : (
        <span className="text-faint text-xs tabular">{formatDuration(duration_ms)}</span>
      )}
      <Status value={state === "unknown" ? "no result" : state} tone={toolTones[state]} />
    </>
  );
  const isOpen = state === "waiting" || tool === "edit" || tool === "write";
  return (
    <div className="flex flex-col gap-2">
      <Fold
        icon={tool === "bash" ? "terminal" : "tool"}
        title={callTitle(tool, args)}
        aside={aside}
        isOpen={isOpen}
        isCode
      >
        <div className="flex flex-col gap-2">
          <CallContent
            tool={tool}
            args={args}
            progress={progress}
            result={result}
            isError={state === "failed"}
          />
          <Pictures pictures={entry.pictures ?? []} />
        </div>
      </Fold>
      {approval_id === undefined ? null : (
        <Decision agent={agent} instance={instance} approval_id={approval_id} />
      )}
      {decision === undefined ? null : <p className="pl-3 text-soft text-xs foreign">{visible(decision)}</p>}
    </div>
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

function Fold({ icon, title, aside, isOpen = false, isCode = false, children }: FoldProps): ReactNode {
  return (
    <Collapsible.Root defaultOpen={isOpen} className="min-w-0 rounded-lg border border-line bg-panel">
      <Collapsible.Trigger className="group flex min-h-9 w-full items-center gap-2 px-3 py-1.5 text-left text-sm">
        <span className="text-faint">
          <Icon name={icon} />
        </span>
        <span className={`min-w-0 flex-1 truncate text-soft ${isCode ? "font-mono text-xs" : ""}`}>
          <bdi>{visible(title.slice(0, 300))}</bdi>
        </span>
        {aside}
        <span className="text-faint transition-transform group-data-[panel-open]:rotate-90">
          <Icon name="chevron" size={14} />
        </span>
      </Collapsible.Trigger>
      <Collapsible.Panel className="border-line border-t p-3 text-sm">{children}</Collapsible.Panel>
    </Collapsible.Root>
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
