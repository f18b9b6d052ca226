import type { DatabaseSync } from "node:sqlite";
import type { EngineBase } from "../engine-base.ts";

/** The base of the parts that hold SQL. */
export interface EmbeddedBase extends EngineBase {
  /** Reads see every committed write, those of other processes included; the statements of `commit` are prepared on it too. */
  readonly database: DatabaseSync;
}
