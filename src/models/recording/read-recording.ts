import { readFileSync } from "node:fs";
import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import { type Exchange, toRecordedRequest } from "./exchange.ts";
import type { ModelFetch, Recorder } from "./record-fetch.ts";

export interface RecordingOptions {
  /**
   * Fields of a request's body that may differ, as paths with `*` for any name or index: `metadata.*`,
   * `messages.*.content`.
   */
  readonly ignore?: readonly string[];
}

/** A recording that answers in the providers' place. */
export interface Recording {
  /** Gives the `fetch` for the requests of one model. */
  readonly fetchFor: Recorder;
  /** The models of the recording, in the order in which they were first asked. */
  readonly models: readonly string[];
  /** How many of its exchanges were not asked for yet. */
  readonly unused: number;
}

/** Names that kit's requests carry and that are new in each run: a session's cache key. */
const alwaysIgnored: readonly string[] = ["prompt_cache_key"];

/** Ids that kit makes: `call_01J…`. A second run has others in the same places. */
const ownId = /\b([a-z]{2,12})_[0-9A-HJKMNP-TV-Z]{26}\b/g;

/**
 * Reads a recording of `KIT_RECORD`. Each exchange answers one request: the first unused one that was asked
 * the same, whatever the order, so that sessions may run side by side. Keys, hosts and ids of kit's own do not
 * count; a request that no exchange answers is refused with `replay_mismatch`, which names the place where it
 * first differs from the nearest one.
 *
 * Throws `invalid_request` for a file that is not a recording, `not_found` where there is none.
 *
 * @example
 * ```ts
 * import { openTestApp, readRecording } from "kit/testing";
 *
 * const recording = readRecording("tests/release.jsonl");
 * const app = await openTestApp({ root: ".", recording });
 * await app.run("release");
 * console.log(recording.unused); // 0
 * await app.close();
 * ```
 */
export function readRecording(file: string, { ignore = [] }: RecordingOptions = {}): Recording {
  const exchanges = readExchanges(file);
  const left = new Set(exchanges);
  const ignored = [...alwaysIgnored, ...ignore].map((path) => path.split("."));
  return {
    models: [...new Set(exchanges.map(({ model }) => model))],
    get unused() {
      return left.size;
    },
    fetchFor: (model): ModelFetch => {
      return async (input, init) => {
        const asked = toRecordedRequest(input, init, (text) => text);
        init?.signal?.throwIfAborted();
        let nearest: { readonly exchange: Exchange; readonly found: readonly Difference[] } | undefined;
        for (const exchange of left) {
          if (exchange.model !== model) continue;
          const found = differences(exchange.request, asked, ignored);
          if (found.length === 0) {
            left.delete(exchange);
            return toResponse(exchange.response);
          }
          if (nearest === undefined || found.length < nearest.found.length) nearest = { exchange, found };
        }
        throw mismatch(
          model,
          nearest === undefined ? undefined : { ...nearest, at: exchanges.indexOf(nearest.exchange) },
        );
      };
    },
  };
}

function readExchanges(file: string): readonly Exchange[] {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    throw noRecording(file, cause);
  }
  return text.split("\n").flatMap((line, index) => {
    if (line.trim() === "") return [];
    let cause: unknown;
    try {
      const exchange: unknown = JSON.parse(line);
      if (isExchange(exchange)) return [exchange];
    } catch (error) {
      cause = error;
    }
    throw new KitError({
      code: "invalid_request",
      message: `${file} is not a recording of provider calls: line ${index + 1} cannot be read.`,
      hint: "Record it again with KIT_RECORD; a line that a crash cut off can be removed.",
      cause,
    });
  });
}

function noRecording(file: string, cause: unknown): KitError {
  return new KitError({
    code: "not_found",
    message: `There is no recording at ${file}.`,
    hint: "Make one: run the same with KIT_RECORD set to that file and the provider's key.",
    cause,
  });
}

function isExchange(value: unknown): value is Exchange {
  if (typeof value !== "object" || value === null) return false;
  const { version, model, request, response }: Partial<Record<keyof Exchange, unknown>> = value;
  return (
    version === 1 &&
    typeof model === "string" &&
    isRecord(request) &&
    typeof request.url === "string" &&
    isRecord(response)
  );
}

function toResponse(response: Exchange["response"]): Response {
  if ("error" in response) throw new TypeError("fetch failed", { cause: new Error(response.error) });
  const chunks = response.chunks[Symbol.iterator]();
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const { done, value } = chunks.next();
      if (done !== true) controller.enqueue(encoder.encode(value));
      else if (response.cut === true) controller.error(new Error("The recorded answer broke off here."));
      else controller.close();
    },
  });
  return new Response(body, { status: response.status, headers: { ...response.headers } });
}

type Path = readonly (string | number)[];

interface Difference {
  readonly path: Path;
  readonly recorded: unknown;
  readonly asked: unknown;
}

/** A prompt that is another one altogether differs in hundreds of places; no reader goes through them all. */
const maxDifferences = 200;

/** Where two requests differ, in reading order. Hosts do not count: a test may have its own. */
function differences(
  recorded: Exchange["request"],
  asked: Exchange["request"],
  ignored: readonly (readonly string[])[],
): readonly Difference[] {
  const found: Difference[] = [];
  const ids = new Map<string, string>();
  const compare = (left: unknown, right: unknown, path: Path): void => {
    if (found.length >= maxDifferences || Object.is(left, right)) return;
    if (ignored.some((pattern) => matches(pattern, path))) return;
    if (Array.isArray(left) && Array.isArray(right)) {
      const length = Math.max(left.length, right.length);
      for (let at = 0; at < length; at += 1) compare(left[at], right[at], [...path, at]);
    } else if (isRecord(left) && isRecord(right)) {
      for (const key of new Set([...Object.keys(left), ...Object.keys(right)]))
        compare(left[key], right[key], [...path, key]);
    } else if (typeof left !== "string" || typeof right !== "string" || !isSameText(left, right, ids)) {
      found.push({ path, recorded: left, asked: right });
    }
  };
  compare(recorded.method, asked.method, ["method"]);
  compare(pathOf(recorded.url), pathOf(asked.url), ["url"]);
  compare(recorded.body, asked.body, []);
  return found;
}

/** Whether two texts are equal except for kit's ids, where each id on the left always matches the same id on the right. */
function isSameText(left: string, right: string, ids: Map<string, string>): boolean {
  const leftIds = left.match(ownId);
  const rightIds = right.match(ownId);
  if (leftIds === null || rightIds === null || leftIds.length !== rightIds.length) return false;
  if (left.replace(ownId, "$1") !== right.replace(ownId, "$1")) return false;
  return leftIds.every((id, at) => {
    const other = rightIds[at] ?? "";
    const known = ids.get(id);
    ids.set(id, other);
    return known === undefined || known === other;
  });
}

function pathOf(url: string): string {
  const { pathname, search } = new URL(url);
  return pathname + search;
}

/** Whether a pattern names this field. Values below a matching field are not compared. */
function matches(pattern: readonly string[], path: Path): boolean {
  return (
    pattern.length === path.length && pattern.every((part, at) => part === "*" || part === String(path[at]))
  );
}

/** `messages[2].content`. */
function toText(path: Path): string {
  return path
    .map((part, at) => (typeof part === "number" ? `[${part}]` : `${at === 0 ? "" : "."}${part}`))
    .join("");
}

function mismatch(
  model: string,
  nearest:
    | { readonly exchange: Exchange; readonly found: readonly Difference[]; readonly at: number }
    | undefined,
): KitError {
  const first = nearest?.found[0];
  if (nearest === undefined || first === undefined) {
    return new KitError({
      code: "replay_mismatch",
      message: `The recording has no further answer of ${model}.`,
      hint: "The run makes more requests than the recorded one did. Record it again with KIT_RECORD.",
    });
  }
  return new KitError({
    code: "replay_mismatch",
    message: `The recording has no answer for this request of ${model}: it differs from line ${nearest.at + 1} first at ${toText(first.path)}.`,
    hint: `Recorded: ${excerptOf(first.recorded, first.asked)}. Asked now: ${excerptOf(first.asked, first.recorded)}. Record it again with KIT_RECORD, or name the field in \`ignore\`.`,
    meta: { path: toText(first.path), line: nearest.at + 1, differences: nearest.found.length },
  });
}

const maxExcerpt = 60;

/** The part of a value from which it differs from another value. */
function excerptOf(value: unknown, other: unknown): string {
  if (value === undefined) return "nothing";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const against = typeof other === "string" ? other : (JSON.stringify(other) ?? "");
  let same = 0;
  while (same < text.length && text[same] === against[same]) same += 1;
  const from = Math.max(0, same - maxExcerpt / 3);
  const part = text.slice(from, from + maxExcerpt).toWellFormed();
  return JSON.stringify(`${from > 0 ? "…" : ""}${part}${from + maxExcerpt < text.length ? "…" : ""}`);
}
