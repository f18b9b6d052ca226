import type { ReactNode } from "react";

const tones = {
  good: "bg-good-back text-good",
  warn: "bg-warn-back text-warn",
  bad: "bg-bad-back text-bad",
  busy: "bg-accent-back text-accent",
  none: "bg-raised text-soft",
} as const;

export type Tone = keyof typeof tones;

const toneOf: Readonly<Record<string, Tone>> = {
  completed: "good",
  running: "busy",
  working: "busy",
  queued: "none",
  waiting: "warn",
  "waiting for you": "warn",
  "trying again": "warn",
  failed: "bad",
  error: "bad",
  warning: "warn",
  cancelled: "none",
};

/** A state in a word; a running one has a moving dot. */
export function Status({
  value,
  tone = toneOf[value] ?? "none",
}: {
  readonly value: string;
  readonly tone?: Tone;
}): ReactNode {
  return (
    <span
      className={`inline-flex h-5 shrink-0 items-center gap-1.5 rounded-full px-2 font-medium text-xs ${tones[tone]}`}
    >
      {tone === "busy" ? <span className="size-1.5 animate-pulse-soft rounded-full bg-current" /> : null}
      {value}
    </span>
  );
}
