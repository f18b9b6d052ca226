import type { Connection } from "../../sqlite/statements.ts";
import { parseStored, readMeta, writeMeta } from "./open-index.ts";

/**
 * While a turn lasts, only its pass writes to the index. A pass fails where another process has written since the pass began, so
 * without turns a slow process always loses to fast ones.
 */
interface WriteTurn {
  readonly pass: string;
  /** Milliseconds since 1970. The turn of a killed process ends then. */
  readonly until: number;
}

/** A pass extends its turn with each batch. */
const turnMs = 5000;

/** The `turn` in the `Meta` of a pass whose turn starts or goes on now. */
export function turnFromNow(pass: string): string {
  return JSON.stringify({ pass, until: Date.now() + turnMs } satisfies WriteTurn);
}

/** Gives a pass the turn; returns false where another pass has it. */
export function claimTurn(database: Connection, pass: string): boolean {
  return database.transaction(() => {
    if (isTurnOfAnother(database, pass)) return false;
    writeMeta(database, "turn", turnFromNow(pass));
    return true;
  });
}

/** Ends the turn of a pass, if it still has it. */
export function releaseTurn(database: Connection, pass: string): void {
  database.transaction(() => {
    if (!isTurnOfAnother(database, pass)) writeMeta(database, "turn", undefined);
  });
}

/** Whether a pass other than `own` has the turn. */
export function isTurnOfAnother(database: Connection, ownPass?: string): boolean {
  const stored = readMeta(database, "turn");
  if (stored === undefined) return false;
  const { pass, until } = parseStored<WriteTurn>(stored);
  const remainingMs = until - Date.now();
  // A turn that seems to last longer was given before the clock was set back.
  return pass !== ownPass && remainingMs > 0 && remainingMs <= turnMs;
}
