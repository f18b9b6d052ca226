import { type ReactNode, useSyncExternalStore } from "react";
import { formatAge } from "./text.ts";

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

/** The time since an event; shows the exact time on hover. */
export function Age({ at }: { readonly at: string }): ReactNode {
  const current = useSyncExternalStore(subscribe, () => now);
  return (
    <time dateTime={at} title={new Date(at).toLocaleString()} className="whitespace-nowrap tabular">
      {formatAge(at, Math.max(current, Date.now()))}
    </time>
  );
}
