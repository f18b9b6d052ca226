import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { limits } from "../limits.ts";
import { TooLongError } from "./bound-response.ts";
import { createFloodGate, type FloodGate } from "./flood-gate.ts";

/** A request without a complete response. */
interface Waiting {
  interimAnswers: number;
  readonly pieces: FloodGate;
  readonly flooded: AbortController;
  readonly refuse: Watch["refuse"];
}

/** How a caller watches a request. */
export interface Watch {
  /** Called before the request fails because of an excess. */
  readonly onExcess?: (what: string) => void;
  /** Returns why a request must not go to the IP address that it is connected to. */
  readonly refuse?: (address: string) => Error | undefined;
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
  // Reported before the first byte of the request is written.
  subscribe("undici:client:sendHeaders", (message) => {
    const { request, socket } = message as { readonly request: object; readonly socket: Socket };
    const fault = waiting.get(request)?.refuse?.(socket.remoteAddress ?? "");
    if (fault !== undefined) socket.destroy(fault);
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
 * small pieces, such as HTTP chunks of one byte. A request that `refuse` refuses fails with its error as the cause, before anything
 * of it is sent.
 */
export async function floodSafeFetch(
  input: string | URL,
  init: RequestInit,
  { onExcess, refuse }: Watch,
): Promise<Response> {
  listen();
  const flooded = new AbortController();
  flooded.signal.addEventListener("abort", () => onExcess?.(flooded.signal.reason.message), { once: true });
  const signals = init.signal === undefined || init.signal === null ? [] : [init.signal];
  const signal = AbortSignal.any([flooded.signal, ...signals]);
  const pieces = createFloodGate({ ...limits.flood, lineBytes: limits.httpPieceBytes });
  return current.run({ interimAnswers: 0, pieces, flooded, refuse }, () => fetch(input, { ...init, signal }));
}
