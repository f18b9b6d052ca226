import { KitError } from "../../base/kit-error.ts";
import type { Page } from "../contract.ts";

/** In characters of what its records hold: a thousand large ones would not fit into an answer, nor into memory. */
const largestPage = 8 * 1024 * 1024;

export interface PageSource<Row, Item> {
  /** Rows behind the cursor, read as they are asked for. */
  readonly rows: (limit: number) => Iterable<Row>;
  /** Default 50. */
  readonly limit: number | undefined;
  readonly size: (row: Row) => number;
  readonly toItem: (row: Row) => Item;
  /** The cursor of the page that starts after this row. */
  readonly toCursor: (row: Row) => string;
}

/**
 * A page of a list: as many records as were asked for, or fewer where they are large, and at least one. Throws
 * `invalid_request` for a limit that is none.
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
