import { withDeadline } from "../../base/abort.ts";

/** A function of the configuration that says who a sender is, or what a sender may do. */
export interface AskedHook {
  /** Its key in the configuration. */
  readonly name: string;
  /** How long it may take. */
  readonly timeoutMs: number;
}

/**
 * Waits for a hook's answer. One that never comes would keep its request, or the connection of a WebSocket's
 * handshake, for ever. Throws what the hook threw, and an `Error` when its time is over: both are errors of ours,
 * which refuse the request and are told to the operator.
 */
export async function answerInTime<Answer>(
  answer: Answer | Promise<Answer>,
  { name, timeoutMs }: AskedHook,
): Promise<Answer> {
  // Most hooks answer at once, and need no clock.
  if (!(answer instanceof Promise)) return answer;
  return await withDeadline(answer, {
    ms: timeoutMs,
    onTimeout: () => new Error(`${name} did not answer within ${timeoutMs} ms.`),
  });
}
