/**
 * A CTE for a statement whose commit need not wait for the disk, because a crash of the database may undo it. The statement names
 * `quick` in its FROM.
 */
export const quick = "quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))";
