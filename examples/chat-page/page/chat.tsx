import { useChat } from "@ai-sdk/react";
import {
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from "ai";
import { useEffect, useRef, useState } from "react";
import { pageTools, transport } from "./desk.ts";
import { Message } from "./message.tsx";
import { isWaiting, toCall } from "./parts.ts";

const states = { waiting: "waits for you", busy: "answers", ready: "ready" };
const ideas = [
  "Where is order 4711?",
  "Refund order 4711",
  "Wrap order 4711 as a gift",
  "What time is it here?",
  "Tell me a long story",
];

export function Chat({ id, stored }: { readonly id: string; readonly stored: UIMessage[] }) {
  const chat = useChat({
    id,
    messages: stored,
    // Takes up the answer that runs.
    resume: true,
    transport,
    // Goes on once each call of the newest answer is decided, and each call of the page's tools has its result.
    sendAutomaticallyWhen: (state) =>
      lastAssistantMessageIsCompleteWithApprovalResponses(state) ||
      lastAssistantMessageIsCompleteWithToolCalls(state),
  });
  const { messages, status, error, sendMessage, regenerate, addToolApprovalResponse, addToolOutput } = chat;
  const [refusal, setRefusal] = useState("");
  const isBusy = status === "submitted" || status === "streaming";
  const newest = messages.at(-1);
  const waits = newest?.parts.some(isWaiting) === true;
  const state = waits ? "waiting" : isBusy ? "busy" : "ready";

  // Not `onToolCall`: after a reload it is not called again for a call that still waits.
  const answered = useRef(new Set<string>());
  useEffect(() => {
    for (const call of newest?.parts.map(toCall) ?? []) {
      const run = call && pageTools[call.tool];
      if (call?.state !== "input-available" || run === undefined || answered.current.has(call.id)) continue;
      answered.current.add(call.id);
      void addToolOutput({ tool: call.tool as never, toolCallId: call.id, output: run() as never });
    }
  }, [newest, addToolOutput]);

  useEffect(() => {
    const { scrollHeight } = document.documentElement;
    // A person who has scrolled up reads there.
    if (window.innerHeight + window.scrollY > scrollHeight - 240) window.scrollTo(0, scrollHeight);
  }, [messages]);

  return (
    <div className="page">
      <header>
        <h1>Lamp desk</h1>
        <p className="status" data-state={state} role="status">
          {states[state]}
        </p>
        <a className="button" href="/">
          New chat
        </a>
      </header>
      <main>
        {messages.length === 0 && (
          <section className="empty">
            <h2>What can we do for you?</h2>
            <p>The agent is a small script, so it knows these:</p>
            {ideas.map((text) => (
              <button key={text} type="button" onClick={() => sendMessage({ text })}>
                {text}
              </button>
            ))}
          </section>
        )}
        {messages.map((message) => (
          <Message
            key={message.id}
            message={message}
            canChange={!isBusy}
            onDecide={(approval, approved) => addToolApprovalResponse({ id: approval, approved })}
            onAnswer={async (approvalId, answer) => {
              try {
                await transport.approve({ chatId: id, messageId: message.id, approvalId, ...answer });
                setRefusal("");
                await chat.resumeStream();
              } catch (refused) {
                setRefusal(String(refused));
              }
            }}
            // The same id: kit goes back before the message, and answers the new one instead.
            onEdit={(text) => sendMessage({ text, messageId: message.id })}
            onAgain={message === newest && !waits ? () => regenerate() : undefined}
          />
        ))}
        {refusal && (
          <p className="error" role="alert">
            {refusal}
          </p>
        )}
        {status === "submitted" && <p className="pending">…</p>}
        {error && (
          <p className="error" role="alert">
            {error.message}
            <button type="button" onClick={() => regenerate()}>
              Try again
            </button>
          </p>
        )}
      </main>
      <Composer
        isBusy={isBusy}
        waits={waits}
        onSend={(text) => sendMessage({ text })}
        // Not `stop` of `useChat`, which only disconnects: the agent would go on.
        onStop={() => transport.stop(id)}
      />
    </div>
  );
}

function Composer(props: {
  readonly isBusy: boolean;
  readonly waits: boolean;
  readonly onSend: (text: string) => Promise<void>;
  readonly onStop: () => Promise<boolean>;
}) {
  const { isBusy, waits, onSend, onStop } = props;
  const [text, setText] = useState("");
  const send = () => {
    if (text.trim() === "" || isBusy || waits) return;
    setText("");
    void onSend(text.trim());
  };
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        aria-label="Message"
        placeholder={waits ? "Decide or answer above" : "Write a message"}
        rows={1}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
          event.preventDefault();
          send();
        }}
      />
      {isBusy || waits ? (
        <button type="button" className="stop" onClick={() => void onStop()}>
          Stop
        </button>
      ) : (
        <button type="submit" className="primary" disabled={text.trim() === ""}>
          Send
        </button>
      )}
    </form>
  );
}
