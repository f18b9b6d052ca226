import { type ReactNode, useEffect, useState, useSyncExternalStore } from "react";
import { formatAge, formatMoment } from "./text.ts";

let now = Date.now();
const listeners = new Set<() => void>();
setInterval(() => {
  now = Date.now();
  for (const listener of listeners) listener();
}, 5_000);

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The time in ms since the epoch, updated every second. */
export function useNow(): number {
  const [time, setTime] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setTime(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return time;
}

/** The time since an event, or until one; shows the exact time on hover. */
export function Age({ at }: { readonly at: string }): ReactNode {
  return <Time at={at} format={formatAge} />;
}

/** When something will happen, and how long that is from now: `26 Nov, in 2 days`. */
export function Moment({ at }: { readonly at: string }): ReactNode {
  return <Time at={at} format={formatMoment} />;
}

function Time({
  at,
  format,
}: {
  readonly at: string;
  readonly format: (timestamp: string, now: number) => string;
}): ReactNode {
  const current = useSyncExternalStore(subscribe, () => now);
  return (
    <time dateTime={at} title={new Date(at).toLocaleString()} className="whitespace-nowrap tabular">
      {format(at, Math.max(current, Date.now()))}
    </time>
  );
}
