import type { HostLink } from "./host-link.ts";

/** The limit of a run's output in characters; further output is only counted. */
const maxOutputChars = 100_000;

const batchChars = 8_192;
const batchMs = 100;

export interface Output {
  /** The callback that Monty calls. */
  readonly callback: (stream: string, text: string) => void;
  /** Sends buffered output. Call it before sending another message, to keep the order. */
  flush(): void;
  /** The number of printed characters, and of dropped ones. */
  readonly printed: number;
  readonly dropped: number;
}

/**
 * Batches Python's output. It is sent while the program runs, so that it is not lost if the process is killed. `printed` is
 * the number of characters that the program printed before in another process.
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
