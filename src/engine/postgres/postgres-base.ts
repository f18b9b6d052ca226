import { KitError } from "../../base/kit-error.ts";
import { isPostgresUrl } from "../../postgres/is-postgres-url.ts";
import type { Owned } from "../cluster.ts";
import type { EngineHandlers } from "../contract.ts";
import type { EngineBase, EngineLimits } from "../shared/engine-base.ts";
import { type DatabaseClock, type EngineDatabase, openEngineDatabase } from "./engine-database.ts";
import type { NewsWire } from "./news.ts";
import type { Ownership } from "./ownership.ts";

export interface PostgresEngineOptions {
  /** `postgres://user:password@host:5432/name`; the address of a pooler in transaction mode works too. */
  readonly url: string;
  /** The address of the same database without a pooler, for the two connections that hold locks and listen; default: `url`. */
  readonly directUrl?: string | undefined;
  /** The schema of kit's tables, created if it is missing; default "kit". */
  readonly schema?: string | undefined;
  /** Omitted limits have their defaults. */
  readonly limits?: Partial<EngineLimits> | undefined;
  /** The most connections of this node, in addition to three direct ones for locks, heartbeats and news; default 10. */
  readonly maxConnections?: number | undefined;
  /** The version of kit, for operators; default: the running version. */
  readonly version?: string | undefined;
  /** The name of the project, for operators: nodes of two projects on one schema are a mistake. */
  readonly project?: string | undefined;
  /** For tests: nodes send each other no news, and poll the rows instead. */
  readonly isMute?: boolean | undefined;
}

/** The base of the parts that use SQL for Postgres. */
export interface PostgresBase extends EngineBase {
  readonly clock: DatabaseClock;
  readonly time: DatabaseClock;
  readonly limits: EngineLimits;
  readonly database: EngineDatabase;
  readonly ownership: Ownership;
  readonly news: NewsWire;
  /** Makes some node do the work of these instances and runs, if nodes take shards only on request. Can be repeated. */
  readonly wake: (keys: readonly Owned[]) => void;
  /** The handlers of this node; `undefined` before `start`. */
  readonly handlers: () => EngineHandlers | undefined;
}

/** Opens the tables of an engine. Throws `invalid_request` if the address is not a Postgres address. */
export async function open(options: PostgresEngineOptions): Promise<EngineDatabase> {
  if (!isPostgresUrl(options.url)) throw badUrl();
  return await openEngineDatabase({ ...options, schema: options.schema ?? "kit" });
}

function badUrl(): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The address of the engine's database is not a Postgres address.",
    hint: "Write postgres://user:password@host:5432/name, with special characters percent-encoded.",
  });
}

/** The JSON of a value for a row. Postgres itself stores long texts outside the row. */
export function toText(value: unknown): string {
  return (JSON.stringify(value) as string | undefined) ?? "null";
}
