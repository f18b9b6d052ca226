import { KitError } from "../../base/kit-error.ts";
import { isPostgresUrl } from "../../postgres/is-postgres-url.ts";
import type { Owned } from "../cluster.ts";
import type { EngineHandlers } from "../contract.ts";
import type { EngineBase, EngineLimits } from "../shared/engine-base.ts";
import { type DatabaseClock, type EngineDatabase, openEngineDatabase } from "./engine-database.ts";
import type { NewsWire } from "./news.ts";
import type { Ownership } from "./ownership.ts";

export interface PostgresEngineOptions {
  /** `postgres://user:password@host:5432/name`; a pooler in between may give each transaction another connection. */
  readonly url: string;
  /** The same database without a pooler, for the two connections that hold locks and listen; default: `url`. */
  readonly directUrl?: string | undefined;
  /** The schema of kit's tables, made when it is missing; default "kit". */
  readonly schema?: string | undefined;
  /** Limits that are left out keep their defaults. */
  readonly limits?: Partial<EngineLimits> | undefined;
  /** Connections of this node at most, beside two of its own for locks and news; default 10. */
  readonly maxConnections?: number | undefined;
  /** The version of kit, for operators; default: this one. */
  readonly version?: string | undefined;
  /** The name of the project, for operators: nodes of two projects on one schema are a mistake. */
  readonly project?: string | undefined;
  /** For tests: nodes do not tell each other anything, and find it in the rows. */
  readonly isMute?: boolean | undefined;
}

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
export async function open(options: PostgresEngineOptions): Promise<EngineDatabase> {
  if (!isPostgresUrl(options.url)) throw badUrl();
  return await openEngineDatabase({ ...options, schema: options.schema ?? "kit" });
}

export function alreadyStarted(): KitError {
  return new KitError({ code: "conflict", message: "The engine has been started already." });
}

function badUrl(): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The address of the engine's database is not a Postgres address.",
    hint: "Write postgres://user:password@host:5432/name, with special characters percent-encoded.",
  });
}

/** `JSON.stringify`, as the rows hold it: Postgres keeps long texts beside the row by itself. */
export function toText(value: unknown): string {
  return (JSON.stringify(value) as string | undefined) ?? "null";
}
