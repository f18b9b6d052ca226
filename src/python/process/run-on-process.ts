import type { AnswerMessage, CallMessage, EndMessage, RunMessage } from "./messages.ts";
import type { Lease } from "./process-pool.ts";
import type { ProcessEnd } from "./python-process.ts";

export interface ProcessRun {
  readonly message: RunMessage;
  readonly attachment: Uint8Array;
  readonly signal: AbortSignal;
  output(text: string): void;
  /** Answers a call of Python's; never rejects. The signal fires when nobody waits for the answer any more. */
  call(message: CallMessage, signal: AbortSignal): Promise<AnswerMessage>;
}

export type RunEnd =
  | { readonly message: EndMessage; readonly attachment: Uint8Array }
  /** The process ended before the program did. */
  | { readonly end: ProcessEnd };

/**
 * Runs one program on a leased process. The deadline counts what the program computes, not what the host
 * takes for its calls; when it is over, or the signal fires, the process is killed. Rejects with the
 * signal's reason; everything else is an end.
 */
export async function runOnProcess(lease: Lease, run: ProcessRun): Promise<RunEnd> {
  const { process } = lease;
  const { signal } = run;
  const over = new AbortController();
  let executedMs = 0;
  let since = performance.now();
  let timer: NodeJS.Timeout | undefined;
  let last: NodeJS.Immediate | undefined;
  const stopTimer = (): void => {
    clearTimeout(timer);
    clearImmediate(last);
  };
  const startClock = (): void => {
    since = performance.now();
    timer = setTimeout(
      () => {
        // A host that was busy itself may have the answer in its pipe, unread as yet.
        last = setImmediate(() => process.kill("time"));
      },
      Math.max(0, run.message.deadline_ms - executedMs),
    );
  };
  const stopClock = (): void => {
    stopTimer();
    executedMs += performance.now() - since;
  };
  const onAbort = (): void => process.kill("closed");
  try {
    const ended = await new Promise<RunEnd>((resolve, reject) => {
      const answer = async (message: CallMessage): Promise<void> => {
        stopClock();
        lease.pause();
        const reply = await run.call(message, over.signal);
        if (over.signal.aborted) return;
        await lease.resume(over.signal);
        startClock();
        process.send(reply);
      };
      process.listen({
        message(message, attachment) {
          if (message.type === "output") run.output(message.text);
          else if (message.type === "call") {
            answer(message).catch((error: unknown) => {
              if (!over.signal.aborted) reject(error);
            });
          } else if (message.type !== "ready" && message.type !== "unavailable")
            resolve({ message, attachment });
        },
        ended: (end) => resolve({ end }),
      });
      signal.addEventListener("abort", onAbort, { once: true });
      signal.throwIfAborted();
      startClock();
      process.send(run.message, run.attachment);
    });
    signal.throwIfAborted();
    return ended;
  } finally {
    signal.removeEventListener("abort", onAbort);
    stopTimer();
    process.listen(undefined);
    over.abort(signal.aborted ? signal.reason : undefined);
  }
}
