import { noteBlobs } from "../database/blob-tables.ts";

/** What was done once, by key. A row without a value is a claim: somebody does it now. Times are ms since 1970. */
export const outcomeTable: string = `
CREATE TABLE outcomes (
  outcome_key TEXT PRIMARY KEY,
  claim TEXT NOT NULL,
  claimed_until INTEGER NOT NULL,
  done_at INTEGER,
  value TEXT
) STRICT;
CREATE INDEX outcomes_by_age ON outcomes (coalesce(done_at, claimed_until));
${noteBlobs("outcomes", "outcome_key", ["value"])}`;
