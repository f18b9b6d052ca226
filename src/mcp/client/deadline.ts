/**
 * The result of `work`, or a rejection when `ms` have passed or the signal fires first. Whoever sets the
 * limit stops the work: `onTimeout` gives the error, and is the place to do it.
 */
export async function within<Value>(
  work: Promise<Value>,
  limit: { readonly ms: number; readonly signal?: AbortSignal | undefined; readonly onTimeout: () => Error },
): Promise<Value> {
  const { signal } = limit;
  let timer: NodeJS.Timeout | undefined;
  let onAbort: (() => void) | undefined;
  try {
    const stopped = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(limit.onTimeout()), limit.ms);
      onAbort = () => reject(signal?.reason);
      signal?.addEventListener("abort", onAbort, { once: true });
      if (signal?.aborted) onAbort();
    });
    return await Promise.race([work, stopped]);
  } finally {
    clearTimeout(timer);
    if (onAbort !== undefined) signal?.removeEventListener("abort", onAbort);
    // Nobody listens any more to what loses the race.
    work.catch(() => undefined);
  }
}
