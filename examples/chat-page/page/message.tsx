import type { UIMessage } from "ai";
import { useState } from "react";
import { type Call, type Part, toCall, toQuestion } from "./parts.ts";
import { type Answer, QuestionCard } from "./question.tsx";

interface MessageProps {
  readonly message: UIMessage;
  readonly canChange: boolean;
  readonly onDecide: (approvalId: string, approved: boolean) => void | PromiseLike<void>;
  readonly onAnswer: (questionId: string, answer: Answer) => Promise<void>;
  readonly onEdit: (text: string) => Promise<void>;
  /** Asks for the answer again; absent where that is not offered. */
  readonly onAgain: (() => Promise<void>) | undefined;
}

export function Message({ message, canChange, onDecide, onAnswer, onEdit, onAgain }: MessageProps) {
  const text = message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
  if (message.role === "user") return <UserMessage text={text} canChange={canChange} onEdit={onEdit} />;
  return (
    <article className="assistant">
      {message.parts.map((part, at) => (
        // A part keeps its place, and texts have no id.
        <AnswerPart key={at} part={part} onDecide={onDecide} onAnswer={onAnswer} />
      ))}
      {canChange && onAgain && (
        <button type="button" className="quiet again" onClick={() => void onAgain()}>
          Ask again
        </button>
      )}
    </article>
  );
}

function UserMessage({
  text,
  canChange,
  onEdit,
}: Pick<MessageProps, "canChange" | "onEdit"> & { text: string }) {
  const [draft, setDraft] = useState<string>();
  if (draft === undefined)
    return (
      <article className="user">
        <p>{text}</p>
        {canChange && (
          <button type="button" className="quiet edit" onClick={() => setDraft(text)}>
            Edit
          </button>
        )}
      </article>
    );
  return (
    <form
      className="user editing"
      onSubmit={(event) => {
        event.preventDefault();
        setDraft(undefined);
        void onEdit(draft);
      }}
    >
      <textarea
        aria-label="Edited message"
        // biome-ignore lint/a11y/noAutofocus: the person has just asked to edit.
        autoFocus
        rows={2}
        value={draft}
        onChange={(event) => setDraft(event.target.value)}
      />
      <p>What was said after this message is left behind.</p>
      <button type="button" onClick={() => setDraft(undefined)}>
        Cancel
      </button>
      <button type="submit" className="primary" disabled={draft.trim() === ""}>
        Send
      </button>
    </form>
  );
}

function AnswerPart(props: Pick<MessageProps, "onDecide" | "onAnswer"> & { readonly part: Part }) {
  const { part, onDecide, onAnswer } = props;
  if (part.type === "text") return <p className="text">{part.text}</p>;
  if (part.type === "reasoning")
    return (
      <details className="reasoning">
        <summary>{part.state === "streaming" ? "Thinks" : "Thought"}</summary>
        <p>{part.text}</p>
      </details>
    );
  if (part.type === "file")
    return part.mediaType.startsWith("image/") ? (
      <img className="file" src={part.url} alt="From the model" />
    ) : (
      <a href={part.url} download>
        A file of the type {part.mediaType}
      </a>
    );
  if (part.type === "source-url")
    return (
      <a className="source" href={part.url}>
        {part.title ?? part.url}
      </a>
    );
  const question = toQuestion(part);
  if (question)
    return <QuestionCard question={question} onAnswer={(answer) => onAnswer(question.id, answer)} />;
  const call = toCall(part);
  return call && <CallCard call={call} onDecide={onDecide} />;
}

const states: Readonly<Record<string, string>> = {
  "input-streaming": "begins",
  "input-available": "runs",
  "approval-requested": "needs your approval",
  "approval-responded": "decided",
  "output-available": "done",
  "output-error": "failed",
  "output-denied": "denied",
};

function CallCard({ call, onDecide }: Pick<MessageProps, "onDecide"> & { readonly call: Call }) {
  const { tool, state, input, output, errorText, approval } = call;
  const asked = state === "approval-requested" ? approval : undefined;
  return (
    <section className="call" data-state={state} aria-label={`Call of ${tool}`}>
      <h3>
        <code>{tool}</code>
        <span>{states[state] ?? state}</span>
      </h3>
      <Fields input={input} />
      {output !== undefined && (
        <p className="output">{typeof output === "string" ? output : JSON.stringify(output)}</p>
      )}
      {errorText && <p className="output failed">{errorText}</p>}
      {asked && (
        <div className="decision">
          <button type="button" className="primary" onClick={() => void onDecide(asked.id, true)}>
            Approve
          </button>
          <button type="button" onClick={() => void onDecide(asked.id, false)}>
            Deny
          </button>
        </div>
      )}
    </section>
  );
}

function Fields({ input }: { readonly input: unknown }) {
  const fields = Object.entries(typeof input === "object" && input !== null ? input : {});
  if (fields.length === 0) return null;
  return (
    <dl>
      {fields.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{typeof value === "string" ? value : JSON.stringify(value)}</dd>
        </div>
      ))}
    </dl>
  );
}
