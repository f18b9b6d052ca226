import type { EngineHandlers } from "../contract.ts";
import type { EngineBase, EngineLimits } from "../shared/engine-base.ts";
import type { DatabaseClock, EngineDatabase } from "./engine-database.ts";
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
  /** The handlers of this node, once it works. */
  readonly handlers: () => EngineHandlers | undefined;
}

/** `JSON.stringify`, as the rows hold it: Postgres keeps long texts beside the row by itself. */
export function toText(value: unknown): string {
  return (JSON.stringify(value) as string | undefined) ?? "null";
}
