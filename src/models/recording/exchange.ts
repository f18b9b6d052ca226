import { attempt } from "../../base/attempt.ts";

/** One request to a provider and what came of it: a line of a recording. Secrets and keys are taken out. */
export interface Exchange {
  readonly version: 1;
  /** `provider/model`. */
  readonly model: string;
  readonly request: {
    readonly method: string;
    /** Without the values of keys in its query. */
    readonly url: string;
    /** Parsed where it is JSON, else the text. */
    readonly body: unknown;
  };
  readonly response:
    | {
        readonly status: number;
        readonly headers: Readonly<Record<string, string>>;
        /** The body in the pieces in which it arrived. */
        readonly chunks: readonly string[];
        /** Set where the body was not read to its end: the connection broke, or the caller stopped reading. */
        readonly cut?: true;
      }
    /** No answer came at all. */
    | { readonly error: string };
}

/** Headers of an answer that its reader acts on; the others are the provider's bookkeeping. */
export const keptHeaders: readonly string[] = ["content-type", "retry-after", "retry-after-ms"];

/** The part of a request that a recording keeps. The AI SDK's providers send texts. */
export function toRecordedRequest(
  input: string | URL | Request,
  init: RequestInit | undefined,
  mask: (text: string) => string,
): Exchange["request"] {
  const body = typeof init?.body === "string" ? mask(init.body) : "";
  return {
    method: init?.method ?? "GET",
    url: mask(withoutKeys(input instanceof Request ? input.url : String(input))),
    body: attempt(() => JSON.parse(body), body),
  };
}

/** An address without what may be a key: Google's API takes one in the query. */
function withoutKeys(url: string): string {
  const parts = new URL(url);
  for (const name of [...parts.searchParams.keys()])
    if (/key|token|secret|sig/i.test(name)) parts.searchParams.delete(name);
  parts.username = "";
  parts.password = "";
  return parts.href;
}
