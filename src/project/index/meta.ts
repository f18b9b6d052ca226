import type { SQLInputValue } from "node:sqlite";
import type { IndexDatabase } from "./index-database.ts";

/** Single values of the index, by name. */
export interface Meta {
  readonly fingerprint: string;
  /** Counts the commits that changed what a read can give, from a random number on. */
  readonly generation: number;
  /** The last number that a block's key was made from, plus one. */
  readonly next_number: number;
  /** The ignore rules from outside of the project, as they were at the last pass. */
  readonly outer_rules: string;
  readonly guidelines: number;
  /** `FileDatesUpdate.historyKey` of the dates. */
  readonly history_key: string;
  /** `headKeyOf` the project when its dates were read. */
  readonly head_key: string;
}

export function readMeta<Name extends keyof Meta>(
  database: IndexDatabase,
  name: Name,
): Meta[Name] | undefined {
  return database.get<[never]>("SELECT value FROM meta WHERE name = ?", name)?.[0];
}

export function writeMeta<Name extends keyof Meta>(
  database: IndexDatabase,
  name: Name,
  value: Meta[Name] & SQLInputValue,
): void {
  database.run("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", name, value);
}
