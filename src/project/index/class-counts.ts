import type { IndexDatabase } from "./index-database.ts";

/** By how many blocks each class grows or shrinks. */
export type ClassCounts = Map<number, number>;

export function countBlock(counts: ClassCounts, classCode: number, difference: 1 | -1): void {
  counts.set(classCode, (counts.get(classCode) ?? 0) + difference);
}

export function addToClasses(database: IndexDatabase, counts: ClassCounts): void {
  for (const [code, difference] of counts) {
    if (difference === 0) continue;
    database.run(
      `INSERT INTO classes (code, blocks) VALUES (?, ?)
       ON CONFLICT (code) DO UPDATE SET blocks = blocks + excluded.blocks`,
      ...[code, difference],
    );
  }
  database.run("DELETE FROM classes WHERE blocks = 0");
}
