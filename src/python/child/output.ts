import type { HostLink } from "./host-link.ts";

/** Characters of output that a run may print; what comes after them is only counted. */
const maxOutputChars = 100_000;

const batchChars = 8_192;
const batchMs = 100;

export interface Output {
  /** As Monty calls it. */
  readonly callback: (stream: string, text: string) => void;
  /** Sends what waits; called before anything else is said, so that kit hears things in their order. */
  flush(): void;
  /** Characters printed, and how many of them were dropped. */
  readonly printed: number;
  readonly dropped: number;
}

/**
 * Batches what Python prints. It is sent while the program runs, so that it survives a process that is killed.
 * `printed` is what the program has printed before, in another process.
 */
export function createOutput(link: HostLink, printed = 0): Output {
  let waiting = "";
  let left = Math.max(0, maxOutputChars - printed);
  let dropped = Math.max(0, printed - maxOutputChars);
  let last = performance.now();
  const flush = (): void => {
    last = performance.now();
    if (waiting === "") return;
    link.send({ type: "output", text: waiting });
    waiting = "";
  };
  return {
    callback(_stream, text) {
      const kept = text.length <= left ? text : text.slice(0, left);
      left -= kept.length;
      dropped += text.length - kept.length;
      waiting += kept;
      if (waiting.length >= batchChars || performance.now() - last >= batchMs) flush();
    },
    flush,
    get printed() {
      return maxOutputChars - left + dropped;
    },
    get dropped() {
      return dropped;
    },
  };
}
