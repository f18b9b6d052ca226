import { describeError } from "./report-error.ts";

/** Told what goes wrong while a server runs. */
export type ErrorLog = (error: unknown) => void;

/**
 * Hands on errors as text, with their stacks and without the application's own keys: what the code of a
 * project throws may quote a key that it was given.
 */
export function createErrorLog(mask: (text: string) => string, say: (text: string) => void): ErrorLog {
  return (error) => say(mask(describeError(error)));
}

/**
 * A promise that one tool or workflow has forgotten ends no other's work: it is told, and the server goes on. An
 * exception that nobody caught still ends it, because nobody knows what it has left behind.
 */
export function outliveRejections(log: ErrorLog): Disposable {
  const tell = (reason: unknown): void => {
    const cause = reason instanceof Error ? reason : new Error(String(reason));
    log(new Error("A promise was rejected that nobody waited for.", { cause }));
  };
  process.on("unhandledRejection", tell);
  return { [Symbol.dispose]: () => process.off("unhandledRejection", tell) };
}
