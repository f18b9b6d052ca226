import type { Migration } from "../../postgres/migrate.ts";

/** For lists of what waits: when an open wait began, in ms since 1970; null in the entries of nodes of earlier versions. For lists by time: an index. */
export const listColumns: Migration = (schema) => `
ALTER TABLE ${schema}.run_journal ADD COLUMN begun_at bigint;
CREATE INDEX runs_by_time ON ${schema}.runs (accepted_at);
CREATE INDEX dispatches_by_time ON ${schema}.dispatches (accepted_at);
`;

/** Finds the sessions in which calls wait without reading the calls. */
export const waitingSessionsIndex: Migration = (schema) => `
CREATE INDEX waiting_calls_by_session ON ${schema}.waiting_calls (agent, instance_id, session) WHERE decision IS NULL;
`;
