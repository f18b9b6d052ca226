import { noteBlobs } from "../database/blob-tables.ts";

/** `next_at` is null once a schedule never comes again; times are milliseconds since 1970. */
export const scheduleTables: string = `
CREATE TABLE schedules (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  workflow TEXT NOT NULL,
  cron TEXT NOT NULL,
  timezone TEXT,
  next_at INTEGER,
  last_run_id TEXT,
  payload TEXT
) STRICT;
CREATE INDEX schedules_by_next ON schedules (next_at) WHERE next_at IS NOT NULL;
${noteBlobs("schedules", "id", ["payload"])}`;

/** How often the times of a schedule have passed again: it is a part of each occurrence's name. */
export const scheduleRounds = `
ALTER TABLE schedules ADD COLUMN round INTEGER NOT NULL DEFAULT 0;
`;
