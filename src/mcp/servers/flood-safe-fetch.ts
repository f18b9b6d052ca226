import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
import { limits } from "../limits.ts";
import { TooLongError } from "./bound-response.ts";
import { createFloodGate, type FloodGate } from "./flood-gate.ts";

/** A request without a complete response. */
interface Waiting {
  interimAnswers: number;
  readonly pieces: FloodGate;
  readonly flooded: AbortController;
}

// `fetch` accepts endless interim responses (1xx), and joins the pieces of a body, each of which costs time. Only its
// diagnostics channels report them.
const current = new AsyncLocalStorage<Waiting>();
const waiting = new WeakMap<object, Waiting>();
let isListening = false;
const interimFlood = "It sent too many interim responses (HTTP 1xx).";
const pieceFlood = "It sent an answer in too many small pieces.";

function listen(): void {
  if (isListening) return;
  isListening = true;
  subscribe("undici:request:create", (message) => {
    const exchange = current.getStore();
    if (exchange !== undefined) waiting.set((message as { readonly request: object }).request, exchange);
  });
  subscribe("undici:request:headers", (message) => {
    const { request, response } = message as {
      readonly request: object;
      readonly response: { readonly statusCode: number };
    };
    const exchange = waiting.get(request);
    if (exchange === undefined || response.statusCode >= 200) return;
    exchange.interimAnswers += 1;
    if (exchange.interimAnswers > limits.interimAnswers)
      exchange.flooded.abort(new TooLongError(interimFlood));
  });
  subscribe("undici:request:bodyChunkReceived", (message) => {
    const exchange = waiting.get((message as { readonly request: object }).request);
    if (exchange !== undefined && !exchange.pieces.take(0, 1))
      exchange.flooded.abort(new TooLongError(pieceFlood));
  });
}

/**
 * Like `fetch`, but fails with `TooLongError` if there are too many interim responses, or if a body arrives in too many
 * small pieces, such as HTTP chunks of one byte. Calls `onExcess` first.
 */
export async function floodSafeFetch(
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
