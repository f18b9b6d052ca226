import { type ReactNode, useId } from "react";

interface FilterProps {
  readonly label: string;
  readonly value: string | undefined;
  readonly choices: readonly string[];
  readonly onChange: (value: string | undefined) => void;
}

/** Limits a list to one of a few values; `all` lifts the limit. */
export function Filter({ label, value, choices, onChange }: FilterProps): ReactNode {
  return (
    <Select
      label={label}
      value={value ?? ""}
      choices={[{ value: "", label: "all" }, ...choices.map((choice) => ({ value: choice, label: choice }))]}
      onChange={(chosen) => onChange(chosen === "" ? undefined : chosen)}
    />
  );
}

interface SelectProps {
  readonly label: string;
  readonly value: string;
  readonly choices: readonly { readonly value: string; readonly label: string }[];
  readonly onChange: (value: string) => void;
}

/** Selects one of a few values, named inside of the field's frame. */
export function Select({ label, value, choices, onChange }: SelectProps): ReactNode {
  const field = useId();
  return (
    <div className="flex h-8 min-w-0 items-center rounded-md border border-line bg-panel text-sm focus-within:border-accent">
      <label htmlFor={field} className="pl-2 text-soft">
        {label}
      </label>
      <select
        id={field}
        value={value}
        onChange={({ target }) => onChange(target.value)}
        className="h-full max-w-48 rounded-md bg-panel px-1.5 font-medium"
      >
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.label}
          </option>
        ))}
      </select>
    </div>
  );
}
