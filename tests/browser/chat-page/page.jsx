import { useChat } from "@ai-sdk/react";
import {
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} from "ai";
import { KitChatTransport } from "kit/client";
// biome-ignore lint/correctness/noUndeclaredDependencies: the console brings it.
import { StrictMode, useState } from "react";
// biome-ignore lint/correctness/noUndeclaredDependencies: the console brings it.
import { createRoot } from "react-dom/client";

const query = new URLSearchParams(location.search);
const id = query.get("chat");
const api = `/agents/${query.get("agent")}/page/ui`;
const tools = [{ name: "locate", description: "Where the person is." }];
const transport = new KitChatTransport({ api, tools });

function Chat({ stored }) {
  const { messages, status, error, sendMessage, regenerate, addToolOutput, addToolApprovalResponse } =
    useChat({
      id,
      messages: stored,
      resume: true,
      transport,
      sendAutomaticallyWhen: (chat) =>
        lastAssistantMessageIsCompleteWithApprovalResponses(chat) ||
        lastAssistantMessageIsCompleteWithToolCalls(chat),
    });
  const answer = (part, approved) => addToolApprovalResponse({ id: part.approval.id, approved });
  return (
    <main>
      <p id="status">{status}</p>
      {error && <p id="error">{error.message}</p>}
      {messages.map((message) => (
        <div key={message.id} className={message.role}>
          {message.parts.map((part, at) => (
            <span key={at}>
              {part.type === "text" && part.text}
              {part.type === "tool-locate" && part.state === "input-available" && (
                <button
                  type="button"
                  className="locate"
                  onClick={() =>
                    addToolOutput({ tool: "locate", toolCallId: part.toolCallId, output: "Oslo" })
                  }
                >
                  Tell where you are
                </button>
              )}
              {part.type === "tool-locate" && part.state === "output-available" && part.output}
              {part.state === "approval-requested" && (
                <button type="button" className="deny" onClick={() => answer(part, false)}>
                  Deny
                </button>
              )}
              {part.state === "approval-requested" && (
                <button type="button" className="approve" onClick={() => answer(part, true)}>
                  Approve
                </button>
              )}
            </span>
          ))}
        </div>
      ))}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void sendMessage({ text: event.target.elements.text.value });
          event.target.reset();
        }}
      >
        <input name="text" aria-label="Message" />
      </form>
      <button type="button" id="again" onClick={() => regenerate()}>
        Again
      </button>
      <button
        type="button"
        id="edit"
        onClick={() => {
          const { id: messageId } = messages.find(({ role }) => role === "user");
          void sendMessage({ text: "edited words", messageId });
        }}
      >
        Edit
      </button>
      <button type="button" id="stop" onClick={() => transport.stop(id)}>
        Stop
      </button>
    </main>
  );
}

function Page({ stored }) {
  const [isOpen, setOpen] = useState(true);
  return (
    <>
      {isOpen && <Chat stored={stored} />}
      <button type="button" id="leave" onClick={() => setOpen(false)}>
        Leave
      </button>
    </>
  );
}

const { messages } = await (await fetch(`${api}/${id}/messages`)).json();
createRoot(document.getElementById("root")).render(
  <StrictMode>
    <Page stored={messages} />
  </StrictMode>,
);
