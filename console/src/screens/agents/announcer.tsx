import { type ReactNode, useRef } from "react";
import { callTitle } from "../../ui/tool-call.tsx";
import type { Entry } from "./conversation.ts";
import type { LiveConversation } from "./use-conversation.ts";

/** Tells a screen reader what happens in a conversation: politely that an answer has ended, at once that a call waits. */
export function Announcer({
  agent,
  conversation: { entries, work, state },
}: {
  readonly agent: string;
  readonly conversation: LiveConversation;
}): ReactNode {
  const last = entries.findLast(({ kind }) => kind === "end");
  // An end before the page was opened is no news.
  const known = useRef<string | undefined>(undefined);
  if (state === "loading") known.current = undefined;
  else known.current ??= last?.id ?? "";
  const waiting = entries.findLast((entry) => entry.kind === "call" && entry.state === "waiting");
  return (
    <div className="sr-only">
      <p role="status">{work !== "idle" || last?.id === known.current ? "" : describeEnd(agent, last)}</p>
      <p role="alert">
        {waiting?.kind === "call"
          ? `${agent} waits for your decision: ${callTitle(waiting.tool, waiting.args)}`
          : ""}
      </p>
    </div>
  );
}

function describeEnd(agent: string, end: Entry | undefined): string {
  if (end?.kind !== "end") return "";
  if (end.state === "failed") return `The message to ${agent} failed.`;
  return end.state === "stopped" ? `${agent} was stopped.` : `${agent} has answered.`;
}
