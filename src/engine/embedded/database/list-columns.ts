/** For lists of what waits: when an open wait began, in ms since 1970; null in the entries of earlier versions. For lists by time: an index. */
export const listColumns: string = `
ALTER TABLE run_journal ADD COLUMN begun_at INTEGER;
CREATE INDEX runs_by_time ON runs (accepted_at);
CREATE INDEX dispatches_by_time ON dispatches (accepted_at);
`;
