import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
import { TooLongError } from "./bound-response.ts";
import { createFloodGate, type FloodGate } from "./flood-gate.ts";
import { limits } from "./limits.ts";

/** A request that waits for its answer. */
interface Waiting {
  interimAnswers: number;
  readonly pieces: FloodGate;
  readonly flooded: AbortController;
}

// `fetch` reads interim answers (1xx) for ever, and joins the pieces in which a body comes, each of which costs time;
// only its diagnostics tell of them.
const current = new AsyncLocalStorage<Waiting>();
const waiting = new WeakMap<object, Waiting>();
let isListening = false;
const interimFlood = "It sent interim answers (HTTP 1xx) without end.";
const pieceFlood = "It sent an answer in too many small pieces.";

function listen(): void {
  if (isListening) return;
  isListening = true;
  subscribe("undici:request:create", (message) => {
    const one = current.getStore();
    if (one !== undefined) waiting.set((message as { readonly request: object }).request, one);
  });
  subscribe("undici:request:headers", (message) => {
    const { request, response } = message as {
      readonly request: object;
      readonly response: { readonly statusCode: number };
    };
    const one = waiting.get(request);
    if (one === undefined || response.statusCode >= 200) return;
    one.interimAnswers += 1;
    if (one.interimAnswers > limits.interimAnswers) one.flooded.abort(new TooLongError(interimFlood));
  });
  subscribe("undici:request:bodyChunkReceived", (message) => {
    const one = waiting.get((message as { readonly request: object }).request);
    if (one !== undefined && !one.pieces.take(0, 1)) one.flooded.abort(new TooLongError(pieceFlood));
  });
}

/**
 * `fetch` that ends with `TooLongError` where interim answers come without end, or where a body comes in too many small
 * pieces (HTTP chunks of a byte, for one). `onExcess` hears of it first.
 */
export async function fetchFinal(
  input: string | URL,
  init: RequestInit,
  onExcess: (what: string) => void,
): Promise<Response> {
  listen();
  const flooded = new AbortController();
  flooded.signal.addEventListener("abort", () => onExcess(flooded.signal.reason.message), { once: true });
  const signals = init.signal === undefined || init.signal === null ? [] : [init.signal];
  const signal = AbortSignal.any([flooded.signal, ...signals]);
  const pieces = createFloodGate({ ...limits.flood, lineBytes: limits.httpPieceBytes });
  return current.run({ interimAnswers: 0, pieces, flooded }, () => fetch(input, { ...init, signal }));
}
