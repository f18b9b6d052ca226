import { type ReactNode, useMemo } from "react";
import { Select } from "./filter.tsx";

const spans = {
  "1h": { label: "last hour", ms: 3_600_000 },
  "1d": { label: "last 24 hours", ms: 86_400_000 },
  "7d": { label: "last 7 days", ms: 604_800_000 },
  "30d": { label: "last 30 days", ms: 2_592_000_000 },
} as const;

export type Span = keyof typeof spans;

/** The span of time that an address names; `undefined` for any other text. */
export function findSpan(text: string | undefined): Span | undefined {
  return (Object.keys(spans) as Span[]).find((one) => one === text);
}

/** The start of a span, ISO 8601: the same for all pages of a list, until the span changes. */
export function useSince(span: Span | undefined): string | undefined {
  return useMemo(
    () => (span === undefined ? undefined : new Date(Date.now() - spans[span].ms).toISOString()),
    [span],
  );
}

/** Limits a list to what happened lately. */
export function TimeFilter({
  value,
  onChange,
}: {
  readonly value: Span | undefined;
  readonly onChange: (value: Span | undefined) => void;
}): ReactNode {
  return (
    <Select
      label="Time"
      value={value ?? ""}
      choices={[
        { value: "", label: "any" },
        ...Object.entries(spans).map(([name, { label }]) => ({ value: name, label })),
      ]}
      onChange={(chosen) => onChange(findSpan(chosen))}
    />
  );
}
