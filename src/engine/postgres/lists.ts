import type { WaitingSignal } from "../../protocol/waiting.ts";
import type { DispatchFilter, Page, RunFilter, WaitingListing } from "../contract.ts";
import { createConditions, type ListedTable } from "../shared/list-filter.ts";
import { type SignalRow, toWaitingSignal } from "../shared/runs/waiting-signals.ts";
import { readPage } from "../shared/stored-rows.ts";
import type { PostgresBase } from "./postgres-base.ts";

type Value = string | number;

interface ListedPart<Row, Item> extends Omit<Parameters<typeof readPage<Row, Item>>[0], "rows" | "limit"> {
  /** The rows to search: a table or a query. */
  readonly from: string;
  /** The page has the rows below this value of the order. */
  readonly before: Value;
  /** Columns that must have these values; `undefined` for any value. */
  readonly columns: Readonly<Record<string, string | undefined>>;
}

/** Reads a page of a list, the last of the order first, and the number of all rows if the filter asks for it. */
export async function readList<Row, Item>(
  { database }: Pick<PostgresBase, "database">,
  { filter, listed }: { readonly filter: DispatchFilter | RunFilter; readonly listed: ListedTable },
  { from, before, columns, ...page }: ListedPart<Row, Item>,
): Promise<Page<Item>> {
  const values: Value[] = [];
  const addValue = (value: Value): string => `$${values.push(value)}`;
  const { order } = listed;
  const conditions = Object.entries(columns).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name} = ${addValue(value)}`],
  );
  const table = `$s.${listed.table}`;
  conditions.push(...createConditions(filter, { ...listed, table }, { like: "ILIKE", addValue }));
  const source = (all: readonly string[]): string =>
    `FROM ${from} AS listed ${all.length === 0 ? "" : `WHERE ${all.join(" AND ")}`}`;
  const count = `SELECT count(*) AS count ${source(conditions)}`;
  const counted = [...values];
  const rows = `SELECT * ${source([...conditions, `${order} < ${addValue(before)}`])} ORDER BY ${order} DESC`;
  const [result, total] = await Promise.all([
    readPageOf((most) => database.rows<Row>(`${rows} LIMIT ${most}`, values, { plansAnew: true }), {
      ...page,
      limit: filter.limit,
    }),
    filter.count === true
      ? database.row<{ readonly count: number }>(count, counted, { plansAnew: true })
      : undefined,
  ]);
  return total === undefined ? result : { ...result, total: total.count };
}

/** `readPage` for rows that are read asynchronously. Refuses an invalid limit before the query. */
export async function readPageOf<Row, Item>(
  read: (most: number) => Promise<readonly Row[]>,
  how: Omit<Parameters<typeof readPage<Row, Item>>[0], "rows">,
): Promise<Page<Item>> {
  let most = 0;
  readPage<Row, Item>({
    ...how,
    rows(limit) {
      most = limit;
      return [];
    },
  });
  const rows = await read(most);
  return readPage<Row, Item>({ ...how, rows: () => rows });
}

/** SQL: the open waits `j` of open runs `r` for signals that have not arrived. */
const openWaits = `$s.run_journal AS j JOIN $s.runs AS r ON r.id = j.run
  WHERE j.state = 'pending' AND j.kind = 'wait' AND r.ended_at IS NULL AND NOT r.cancelling
    AND NOT EXISTS (SELECT 1 FROM $s.run_signals AS s WHERE s.run = j.run AND NOT s.taken AND s.name = j.name)`;

/** SQL: when a wait began; waits of earlier versions do not have the time. */
const begunAt = "coalesce(j.begun_at, r.started_at, r.accepted_at)";

/** `Engine.listWaitingSignals`. */
export async function listWaitingSignals(
  base: PostgresBase,
  { limit, after }: WaitingListing,
): Promise<Page<WaitingSignal>> {
  const { at, id, position } = after ?? { at: 0, id: "", position: 0 };
  const [rows, total] = await Promise.all([
    base.database.rows<SignalRow>(
      `SELECT r.run_id, r.workflow, left(r.payload, 400) AS payload, j.position, j.name, j.kind, j.deadline, j.value,
         ${begunAt} AS begun_at
       FROM ${openWaits} AND (${begunAt}, r.run_id COLLATE "C", j.position) > ($1::bigint, $2::text, $3::int)
       ORDER BY ${begunAt}, r.run_id COLLATE "C", j.position LIMIT $4::int`,
      [typeof at === "string" ? Date.parse(at) : at, id, position, limit],
    ),
    base.database.row<{ readonly count: number }>(`SELECT count(*) AS count FROM ${openWaits}`),
  ]);
  return { items: rows.map((row) => toWaitingSignal(row, base)), total: total?.count ?? rows.length };
}
