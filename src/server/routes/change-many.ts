import { KitError } from "../../base/kit-error.ts";
import type { Page } from "../../engine/contract.ts";
import type { AuthorizeRequest } from "../../protocol/access.ts";
import type { Authorization } from "../access/authorize.ts";

/** Codes of errors that concern one record and not the engine. */
const passing: ReadonlySet<string> = new Set([
  "conflict",
  "not_found",
  "run_not_found",
  "forbidden",
  "too_many_requests",
]);

/** The most records that change at the same time. */
const atOnce = 50;

interface Failure {
  readonly id: string;
  readonly error: { readonly type: string; readonly message: string };
}

interface ManyRecords<Item> {
  /** The ids of the request, or a page of the records that its filter selects. */
  readonly selected: readonly string[] | Page<Item>;
  readonly authorization: Authorization;
  readonly idOf: (item: Item) => string;
  /** The question whether the sender may change a record. */
  readonly ask: (item: Item) => AuthorizeRequest;
  /** Finds a record by its id, after checking the sender's permission to change it. Throws otherwise. */
  readonly find: (id: string) => Promise<unknown>;
  /** Changes a record. Throws if it cannot be changed. */
  readonly change: (id: string) => Promise<unknown>;
}

/**
 * Changes several records. A record that cannot be changed, because it has changed or a queue is full, does not stop the others.
 * Without a permission for it, a record of a filter is left out, and one that the request names is a failure.
 */
export async function changeMany<Item>({
  selected,
  authorization,
  idOf,
  ask,
  find,
  change,
}: ManyRecords<Item>): Promise<{
  readonly changed: readonly string[];
  readonly failures: readonly Failure[];
  readonly next_cursor: string | undefined;
}> {
  const isNamed = !("items" in selected);
  const ids = isNamed
    ? [...new Set(selected)]
    : (await authorization.permitted(selected.items, ask)).map((item) => idOf(item));
  const changed: string[] = [];
  const failures: Failure[] = [];
  const changeOne = async (id: string): Promise<void> => {
    try {
      if (isNamed) await find(id);
      await change(id);
      changed.push(id);
    } catch (error) {
      if (!(error instanceof KitError) || !passing.has(error.code)) throw error;
      failures.push({ id, error: { type: error.code, message: error.message } });
    }
  };
  for (let next = 0; next < ids.length; next += atOnce)
    await Promise.all(ids.slice(next, next + atOnce).map(changeOne));
  return { changed, failures, next_cursor: isNamed ? undefined : selected.next_cursor };
}

export function alreadyEnded(): KitError {
  return new KitError({ code: "conflict", message: "It had ended already." });
}
