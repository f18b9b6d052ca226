import type { StandardSchemaV1 } from "@standard-schema/spec";

/** A question to a person. */
export interface Question<Value = unknown> {
  /** The text that the person reads; 1 to 10,000 characters. */
  readonly message: string;
  /** The schema of the answer: of zod, valibot, …, or JSON Schema. The console shows its form. At most 65,536 characters of JSON. */
  readonly schema: StandardSchemaV1<unknown, Value> | { readonly [keyword: string]: unknown };
  /** Milliseconds before the answer is `cancel`; default: the time limit of approvals. */
  readonly timeoutMs?: number | undefined;
  /** Withdraws the question: the answer is `cancel`. */
  readonly signal?: AbortSignal | undefined;
}

/** The answer to a question. `by` is the name of the principal that answered, where callers are known. */
export type Answer<Value = unknown> =
  | { readonly action: "accept"; readonly value: Value; readonly by?: string | undefined }
  | { readonly action: "decline"; readonly reason?: string | undefined; readonly by?: string | undefined }
  /** No person answered: the time was over, the question was withdrawn, or there is no inbox. */
  | { readonly action: "cancel"; readonly reason?: string | undefined };

/**
 * Asks a person a question, which waits like a call that needs approval: in the inbox, without a time limit, over a restart. The
 * time limit of the tool stops meanwhile. Questions of one call are asked one after the other.
 *
 * If the process ends during the wait, the tool is called again from its start, and `ask` returns the answers that were given
 * before: ask first, act afterwards. A tool with `idempotent: true` also leaves memory during a long wait, and is called again
 * after the answer.
 */
export type AskPerson = <Value = unknown>(question: Question<Value>) => Promise<Answer<Value>>;
