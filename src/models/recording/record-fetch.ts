import { appendFileSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { thrownText } from "../../base/thrown.ts";
import { type Exchange, keptHeaders, toRecordedRequest } from "./exchange.ts";

/** Takes keys out of texts, also of such as come in pieces. */
export interface RecordingMask {
  (text: string): string;
  stream(): { push(part: string): string; end(): string };
}

/** Sends the requests of one model, as the AI SDK's providers take it. */
export type ModelFetch = typeof globalThis.fetch;

/** Gives the `fetch` for the requests of one model (`provider/model`). */
export type Recorder = (model: string) => ModelFetch;

/**
 * Writes every exchange with a provider to `file`, one line of JSON each, once its answer has ended. Several
 * processes may write one file: each line is written at once, at the end. Request headers, which carry the
 * key, are left out; what `mask` knows is taken out of bodies and addresses.
 *
 * Throws `unavailable` where the file cannot be written, before the first request is sent.
 */
export function createRecorder(file: string, mask: RecordingMask): Recorder {
  const write = (text: string): void => {
    try {
      appendFileSync(file, text, { mode: 0o600 });
    } catch (cause) {
      throw notWritable(file, cause);
    }
  };
  try {
    mkdirSync(dirname(file), { recursive: true });
  } catch (cause) {
    throw notWritable(file, cause);
  }
  write("");
  return (model) => async (input, init) => {
    const request = toRecordedRequest(input, init, mask);
    const save = (response: Exchange["response"]): void =>
      write(`${JSON.stringify({ version: 1, model, request, response } satisfies Exchange)}\n`);
    let answer: Response;
    try {
      answer = await fetch(input, init);
    } catch (error) {
      save({ error: mask(thrownText(error)) });
      throw error;
    }
    const headers = Object.fromEntries(
      keptHeaders.flatMap((name) => {
        const value = answer.headers.get(name);
        return value === null ? [] : [[name, value]];
      }),
    );
    const record = (chunks: readonly string[], isCut: boolean): void =>
      save({ status: answer.status, headers, chunks, ...(isCut ? { cut: true } : {}) });
    if (answer.body === null) {
      record([], false);
      return answer;
    }
    return new Response(answer.body.pipeThrough(tap(mask, record)), answer);
  };
}

/** Passes bytes on as they come, and keeps their text. */
function tap(
  mask: RecordingMask,
  saveExchange: (chunks: readonly string[], isCut: boolean) => void,
): TransformStream<Uint8Array, Uint8Array> {
  const chunks: string[] = [];
  const decoder = new TextDecoder();
  const masked = mask.stream();
  const add = (text: string): void => {
    if (text !== "") chunks.push(text);
  };
  let isKept = false;
  const end = (isCut: boolean): void => {
    if (isKept) return;
    isKept = true;
    add(masked.push(decoder.decode()));
    add(masked.end());
    saveExchange(chunks, isCut);
  };
  return new TransformStream<Uint8Array, Uint8Array>({
    transform(bytes, controller) {
      add(masked.push(decoder.decode(bytes, { stream: true })));
      controller.enqueue(bytes);
    },
    flush: () => end(false),
    // A reader that leaves, or a connection that breaks.
    cancel: () => end(true),
  });
}

function notWritable(file: string, cause: unknown): KitError {
  return new KitError({
    code: "unavailable",
    message: "Provider calls cannot be recorded: the file cannot be written.",
    hint: `KIT_RECORD names ${file}. ${cause instanceof Error ? cause.message : ""}`.trim(),
    cause,
  });
}
