import { type ReactNode, useState } from "react";
import { Icon } from "./icons.tsx";
import { toReadable, visible } from "./text.ts";

/** How many characters are shown before the user asks for more. */
const initialLength = 8_000;
/** The most characters of one text that the page shows. */
const maxLength = 400_000;

interface CodeProps {
  /** A text, or a value that is shown as JSON. */
  readonly value: unknown;
  readonly label: string;
}

/** Unformatted text, with a button to copy it. Long text is cut until the user asks for more. */
export function Code({ value, label }: CodeProps): ReactNode {
  const [isWhole, setWhole] = useState(false);
  const text = toReadable(value);
  const limit = isWhole ? maxLength : initialLength;
  return (
    <div className="group relative overflow-hidden rounded-md border border-line bg-sunken">
      <pre
        role="group"
        aria-label={label}
        tabIndex={0}
        className="max-h-96 overflow-auto whitespace-pre-wrap p-3 font-mono text-xs foreign"
      >
        {visible(text.slice(0, limit))}
      </pre>
      {text.length > limit ? (
        <button
          type="button"
          onClick={() => setWhole(true)}
          disabled={isWhole}
          className="w-full border-line border-t px-3 py-1.5 text-left text-accent text-xs hover:bg-raised disabled:text-soft"
        >
          {isWhole
            ? `The rest is left out: ${(text.length - limit).toLocaleString()} characters`
            : `Show ${(text.length - limit).toLocaleString()} more characters`}
        </button>
      ) : null}
      <button
        type="button"
        aria-label={`Copy ${label}`}
        onClick={() => void navigator.clipboard?.writeText(text)}
        className="absolute top-1.5 right-1.5 grid size-7 place-items-center rounded-md bg-sunken text-faint opacity-0 hover:text-ink focus-visible:opacity-100 group-hover:opacity-100"
      >
        <Icon name="copy" />
      </button>
    </div>
  );
}
