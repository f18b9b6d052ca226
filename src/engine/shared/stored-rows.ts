import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import { isErrorCode } from "../../protocol/error-code.ts";
import type { EventError } from "../../protocol/event.ts";
import { readTraceContext, type TraceContext } from "../../protocol/tracing.ts";
import type { WorkCause } from "../../protocol/work-cause.ts";
import type { EngineHandlers, Page } from "../contract.ts";

/** Parses JSON of the engine's own rows and files. Throws `unavailable` if it is invalid: the file was damaged. */
export function parseStored(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw damaged(cause);
  }
}

/** Reads the values of one row. A damaged value is null, and `fault` returns its error, so the other rows of a list stay readable. */
export function createRowReader(load: (text: string) => unknown): {
  read(text: string): unknown;
  fault(): { readonly error?: EventError };
} {
  let damage: EventError | undefined;
  return {
    read(text) {
      try {
        return load(text);
      } catch (error) {
        damage ??= toEventError(error, undefined);
        return null;
      }
    },
    fault: () => (damage === undefined ? {} : { error: damage }),
  };
}

function damaged(cause: unknown): KitError {
  return new KitError({
    code: "unavailable",
    message: "A value in the engine's store is damaged.",
    hint: "The rest of the store can be read. The work that was accepted with this value must be sent again.",
    cause,
  });
}

/**
 * The error of a record. The message of a `KitError` is safe for any caller. The message of another error is not: only the
 * cause that `causeOf` returns can contain it.
 */
export function toEventError(error: unknown, causeOf: EngineHandlers["causeOf"]): EventError {
  const cause = causeOf?.(error);
  const why = cause === undefined ? {} : { cause };
  if (error instanceof KitError) {
    const { code, message } = error;
    if (isErrorCode(code)) return { type: code, message, ...why };
  }
  return { type: "internal_error", message: "The handler failed.", ...why };
}

/** The trace and the cause of a piece of work, and whether it `joins`: its row keeps them in one column. */
export interface WorkOrigin {
  readonly trace?: TraceContext | undefined;
  readonly cause?: WorkCause | undefined;
  readonly joins?: boolean | undefined;
}

/**
 * The origin of work as one column: the two trace headers, the cause as JSON, and the mark of an input that joins, one per line; null
 * if there is none. Earlier versions read the first two lines only.
 */
export function toStoredTrace({ trace, cause, joins = false }: WorkOrigin): string | null {
  const { traceparent = "", tracestate = "" } = trace ?? {};
  const lines = [traceparent, tracestate, cause === undefined ? "" : JSON.stringify(cause)];
  const text = (joins ? [...lines, joinsMark] : lines).join("\n").replace(/\n+$/, "");
  return text === "" ? null : text;
}

const joinsMark = "joins";

/** SQL: whether the row of an input has the mark of one that joins. */
export const joinsSql = `coalesce(trace LIKE '%\n${joinsMark}', false) AS joins`;

/** Whether a row has the mark of an input that joins. */
export function joinsOf(stored: string | null): boolean {
  return stored?.endsWith(`\n${joinsMark}`) === true;
}

/** The trace of a row; a stored value that is not a trace is ignored. */
export function fromStoredTrace(stored: string | null): { readonly trace?: TraceContext } {
  const trace = readTraceContext(...((stored ?? "").split("\n").slice(0, 2) as [string, string?]));
  return trace === undefined ? {} : { trace };
}

/** The cause of a row; a stored value that is not a cause of this version is ignored. */
export function causeOfStored(stored: string | null): { readonly cause?: WorkCause } {
  const text = stored?.split("\n")[2];
  if (text === undefined) return {};
  try {
    const cause: unknown = JSON.parse(text);
    return isCause(cause) ? { cause } : {};
  } catch {
    return {};
  }
}

/** The texts that a cause of each type has. Engines load no schema library. */
const texts: Readonly<Record<WorkCause["type"], readonly string[]>> = {
  webhook: ["webhook", "delivery_id"],
  run: ["run_id"],
  prompt: ["agent", "instance_id", "session", "operation_id"],
  schedule: ["schedule"],
  sender: ["principal"],
};

function isCause(value: unknown): value is WorkCause {
  if (!isRecord(value) || typeof value.type !== "string" || !Object.hasOwn(texts, value.type)) return false;
  return texts[value.type as WorkCause["type"]].every((name) => typeof value[name] === "string");
}

/** Characters of all records of a page: a thousand large records would not fit into a response, nor into memory. */
const largestPage = 8 * 1024 * 1024;

export interface PageSource<Row, Item> {
  /** Up to `limit` rows after the cursor, read one at a time. */
  readonly rows: (limit: number) => Iterable<Row>;
  /** Default 50. */
  readonly limit: number | undefined;
  readonly size: (row: Row) => number;
  readonly toItem: (row: Row) => Item;
  /** The cursor of the page that starts after this row. */
  readonly toCursor: (row: Row) => string;
}

/**
 * A page of a list: up to `limit` records, fewer if they are large, but at least one if there is any. Throws
 * `invalid_request` for an invalid limit.
 */
export function readPage<Row, Item>(source: PageSource<Row, Item>): Page<Item> {
  const { limit = 50, toItem, toCursor } = source;
  if (!Number.isInteger(limit) || limit < 1 || limit > 1_000) throw badLimit();
  const items: Item[] = [];
  let last: Row | undefined;
  let room = largestPage;
  for (const row of source.rows(limit + 1)) {
    room -= source.size(row);
    if (last !== undefined && (items.length === limit || room < 0))
      return { items, next_cursor: toCursor(last) };
    items.push(toItem(row));
    last = row;
  }
  return { items };
}

export function badCursor(): KitError {
  return new KitError({ code: "invalid_request", message: "The cursor is not the next_cursor of a list." });
}

function badLimit(): KitError {
  return new KitError({ code: "invalid_request", message: "A limit is a whole number from 1 to 1,000." });
}
