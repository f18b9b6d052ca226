import type { ReactNode } from "react";

const tones = {
  good: "bg-good-back text-good",
  warn: "bg-warn-back text-warn",
  bad: "bg-bad-back text-bad",
  plain: "bg-raised text-soft",
} as const;

export type Tone = keyof typeof tones;

/** A short word about a state. */
export function Chip({
  tone = "plain",
  children,
}: {
  readonly tone?: Tone;
  readonly children: ReactNode;
}): ReactNode {
  return (
    <span
      className={`inline-flex shrink-0 items-center rounded px-1.5 py-0.5 font-medium text-xs ${tones[tone]}`}
    >
      {children}
    </span>
  );
}

interface ChoiceProps<Value extends string> {
  readonly label: string;
  readonly value: Value;
  readonly choices: readonly { readonly value: Value; readonly label: string; readonly count?: number }[];
  readonly onChoose: (value: Value) => void;
}

/** One of a few values, as a row of buttons. */
export function Choice<Value extends string>({
  label,
  value,
  choices,
  onChoose,
}: ChoiceProps<Value>): ReactNode {
  return (
    <fieldset className="flex flex-wrap items-center gap-1">
      <legend className="sr-only">{label}</legend>
      {choices.map((choice) => (
        <button
          key={choice.value}
          type="button"
          aria-pressed={choice.value === value}
          onClick={() => onChoose(choice.value)}
          className={`h-7 rounded-md border px-2 text-sm ${
            choice.value === value
              ? "border-accent bg-accent-back text-accent"
              : "border-line bg-panel text-soft hover:bg-raised"
          }`}
        >
          {choice.label}
          {choice.count === undefined ? null : (
            <span className="ml-1.5 text-xs tabular">{choice.count.toLocaleString()}</span>
          )}
        </button>
      ))}
    </fieldset>
  );
}

/** A field in the bar of a screen, labelled for screen readers. */
export function BarField({
  label,
  value,
  onSubmit,
}: {
  readonly label: string;
  readonly value: string;
  readonly onSubmit: (value: string) => void;
}): ReactNode {
  return (
    <form
      key={value}
      className="min-w-0 flex-1 basis-full sm:max-w-md sm:basis-auto"
      onSubmit={(event) => {
        event.preventDefault();
        const given = new FormData(event.currentTarget).get("value");
        onSubmit(typeof given === "string" ? given.trim() : "");
      }}
    >
      <input
        name="value"
        data-search
        defaultValue={value}
        aria-label={label}
        placeholder={label}
        autoComplete="off"
        spellCheck={false}
        className="h-8 w-full rounded-md border border-line-strong bg-panel px-2.5 text-sm placeholder:text-faint"
      />
    </form>
  );
}
