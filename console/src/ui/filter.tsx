import { type ReactNode, useId } from "react";

interface FilterProps {
  readonly label: string;
  readonly value: string | undefined;
  readonly choices: readonly string[];
  readonly onChange: (value: string | undefined) => void;
}

/** Selects one of a few values, or all. */
export function Filter({ label, value, choices, onChange }: FilterProps): ReactNode {
  const field = useId();
  return (
    <div className="flex items-center gap-1.5">
      <label htmlFor={field} className="text-soft text-sm">
        {label}
      </label>
      <select
        id={field}
        value={value ?? ""}
        onChange={({ target }) => onChange(target.value === "" ? undefined : target.value)}
        className="h-8 max-w-48 rounded-md border border-line bg-panel px-2 text-sm"
      >
        <option value="">all</option>
        {choices.map((choice) => (
          <option key={choice}>{choice}</option>
        ))}
      </select>
    </div>
  );
}
