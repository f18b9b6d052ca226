import { lifecycleWeights, priorityWeights } from "../../protocol/enums.ts";
import type { Framework, Lifecycle, Priority, SpecType } from "../../protocol/spec-block.ts";
import type { Connection } from "../../sqlite/connection.ts";

/** A row of `classes`: one combination of the four values, and how many blocks have it. */
export interface BlockClass {
  readonly id: number;
  readonly framework: Framework;
  readonly spec_type: SpecType;
  readonly lifecycle: Lifecycle;
  readonly priority: Priority;
  readonly blocks: number;
}

/** The classes of an index by their id; there are a few dozen. */
export function readClasses(database: Connection): Map<number, BlockClass> {
  const rows = database.all<[number, Framework, SpecType, Lifecycle, Priority, number]>(
    "SELECT id, framework, spec_type, lifecycle, priority, blocks FROM classes ORDER BY id",
  );
  return new Map(
    rows.map(([id, framework, spec_type, lifecycle, priority, blocks]) => [
      id,
      { id, framework, spec_type, lifecycle, priority, blocks },
    ]),
  );
}

/** The factor of a class in a ranking: lifecycle weight times priority weight. */
export function weightOf({ lifecycle, priority }: Pick<BlockClass, "lifecycle" | "priority">): number {
  return lifecycleWeights[lifecycle] * priorityWeights[priority];
}

/** Above every running number: no index is given so many blocks. */
const keysPerClass: number = 2 ** 32;

/**
 * The key of a block: its class, then a running number. The blocks of a class are a range of keys, so the
 * full-text index counts them without reading any. A search for a common word depends on that.
 */
export function toKey(classId: number, number: number): number {
  return classId * keysPerClass + number;
}

export function classIdOf(key: number): number {
  return Math.floor(key / keysPerClass);
}

/** First and last key of a class. As bigints, because FTS5 takes no floating point for the limits of a range. */
export function keyRangeOf(classId: number): [from: bigint, to: bigint] {
  return [BigInt(toKey(classId, 0)), BigInt(toKey(classId + 1, 0) - 1)];
}
