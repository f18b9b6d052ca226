import { KitError } from "../../base/kit-error.ts";
import { isPostgresUrl } from "../../postgres/is-postgres-url.ts";
import type { Owned } from "../cluster.ts";
import type { EngineHandlers } from "../contract.ts";
import type { EngineBase, EngineLimits } from "../shared/engine-base.ts";
import { type DatabaseClock, type EngineDatabase, openEngineDatabase } from "./engine-database.ts";
import type { NewsWire } from "./news.ts";
import type { Ownership } from "./ownership.ts";

/** The base of the parts that hold SQL for Postgres. */
export interface PostgresBase extends EngineBase {
  readonly clock: DatabaseClock;
  readonly time: DatabaseClock;
  readonly limits: EngineLimits;
  readonly database: EngineDatabase;
  readonly ownership: Ownership;
  readonly news: NewsWire;
  /** Sees to it that some node does what these have to do, where that is not found by itself. It may be repeated. */
  readonly wake: (keys: readonly Owned[]) => void;
  /** The handlers of this node, once it works. */
  readonly handlers: () => EngineHandlers | undefined;
}

/** Opens the tables of an engine. Throws `invalid_request` for an address that is none of Postgres. */
export async function open(
  options: Omit<Parameters<typeof openEngineDatabase>[0], "schema"> & {
    readonly schema?: string | undefined;
  },
): Promise<EngineDatabase> {
  if (!isPostgresUrl(options.url)) throw badUrl();
  return await openEngineDatabase({ ...options, schema: options.schema ?? "kit" });
}

export function alreadyStarted(): KitError {
  return new KitError({ code: "conflict", message: "The engine has been started already." });
}

function badUrl(): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The address of the engine's database is none of Postgres.",
    hint: "Write postgres://user:password@host:5432/name, with special characters percent-encoded.",
  });
}

/** `JSON.stringify`, as the rows hold it: Postgres keeps long texts beside the row by itself. */
export function toText(value: unknown): string {
  return (JSON.stringify(value) as string | undefined) ?? "null";
}
