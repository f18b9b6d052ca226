import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { isReadOnly } from "../../api/server.ts";
import { useChange } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icons.tsx";
import type { SessionName } from "./use-conversation.ts";
import type { Sender } from "./use-send.ts";

interface ComposerProps extends SessionName {
  readonly isWorking: boolean;
  /** Whether nothing was said yet: the cursor is in the field. */
  readonly isNew: boolean;
  readonly sender: Sender;
}

interface Attached {
  readonly name: string;
  readonly data: string;
  readonly media_type: string;
}

/** Sends messages and images, and aborts the running operation. */
export function Composer({ agent, id, session, isWorking, isNew, sender }: ComposerProps): ReactNode {
  const field = useId();
  const [text, setText] = useState("");
  const [images, setImages] = useState<readonly Attached[]>([]);
  const files = useRef<HTMLInputElement>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  const { sending, problem } = sender;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another conversation has its own field.
  useEffect(() => {
    if (isNew) area.current?.focus();
  }, [isNew, agent, id, session]);
  const stop = useChange((to, _: undefined) => to.agents.abort(agent, { id, session }), ["sessions"]);

  async function send(): Promise<void> {
    const message = text.trim();
    if (message === "") return;
    setText("");
    setImages([]);
    const isTaken = await sender.send(message, images);
    if (!isTaken) setText((now) => (now === "" ? message : now));
  }

  async function attach(chosen: FileList | null): Promise<void> {
    const read = await Promise.all(
      [...(chosen ?? [])].filter(({ type }) => type.startsWith("image/")).map(toAttached),
    );
    setImages((old) => [...old, ...read]);
  }

  if (isReadOnly)
    return (
      <p className="border-line border-t px-6 py-3 text-soft text-sm">
        This page only looks: nothing can be sent.
      </p>
    );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
      className="mx-auto w-full max-w-3xl px-4 pb-4 sm:px-6"
    >
      {problem === undefined ? null : (
        <p role="alert" className="mb-2 rounded-md bg-bad-back px-3 py-2 text-bad text-sm foreign">
          {problem}
        </p>
      )}
      <div className="rounded-xl border border-line-strong bg-panel focus-within:border-accent">
        {images.length === 0 ? null : (
          <ul className="flex flex-wrap gap-2 p-2">
            {images.map(({ name, data, media_type }) => (
              <li key={name + data.length} className="relative">
                <img
                  src={`data:${media_type};base64,${data}`}
                  alt={name}
                  className="size-14 rounded-md border border-line object-cover"
                />
                <button
                  type="button"
                  aria-label={`Remove ${name}`}
                  onClick={() => setImages((old) => old.filter((one) => one.data !== data))}
                  className="absolute -top-1.5 -right-1.5 grid size-5 place-items-center rounded-full border border-line bg-panel"
                >
                  <Icon name="close" size={10} />
                </button>
              </li>
            ))}
          </ul>
        )}
        <label htmlFor={field} className="sr-only">
          Message to {agent}
        </label>
        <textarea
          ref={area}
          id={field}
          value={text}
          rows={Math.min(10, Math.max(2, text.split("\n").length))}
          onChange={({ target }) => setText(target.value)}
          onPaste={({ clipboardData }) => void attach(clipboardData.files)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
            event.preventDefault();
            void send();
          }}
          placeholder={`Message ${agent}`}
          className="block w-full resize-none bg-transparent px-3.5 pt-2.5 text-base outline-none placeholder:text-faint"
        />
        <div className="flex items-center gap-2 p-2">
          <input
            ref={files}
            type="file"
            accept="image/*"
            multiple
            hidden
            onChange={({ target }) => void attach(target.files)}
          />
          <Button
            variant="quiet"
            icon="plus"
            aria-label="Attach an image"
            onClick={() => files.current?.click()}
          />
          <span className="hidden text-faint text-xs sm:block">
            Enter sends, Shift + Enter starts a new line
          </span>
          <span className="ml-auto flex items-center gap-2">
            {sending > 0 && isWorking ? <span className="text-faint text-xs">waits for its turn</span> : null}
            {isWorking ? (
              <Button icon="stop" isBusy={stop.isPending} onClick={() => stop.mutate(undefined)}>
                Stop
              </Button>
            ) : null}
            <Button
              variant="solid"
              icon="send"
              type="submit"
              aria-label="Send"
              disabled={text.trim() === ""}
            />
          </span>
        </div>
      </div>
    </form>
  );
}

function toAttached(file: File): Promise<Attached> {
  const { promise, resolve, reject } = Promise.withResolvers<Attached>();
  const reader = new FileReader();
  reader.onload = () =>
    resolve({ name: file.name, media_type: file.type, data: String(reader.result).replace(/^[^,]*,/, "") });
  reader.onerror = () => reject(new Error(`${file.name} cannot be read.`));
  reader.readAsDataURL(file);
  return promise;
}
