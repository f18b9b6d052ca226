/** The pause between two heartbeats of a draining node, which releases shards that have come to rest. */
export const drainBeatMs = 50;
/** A node whose heartbeats fail for this time stops its work, and begins none: another node may be about to take over. */
export const ownSilenceMs = 2_000;
/** The same for a node that has lost its connection, and has not reached the database since. */
export const ownGoneMs = 1_000;
/** How often a node looks whether its heartbeats reach the database. */
export const watchMs = 100;
/**
 * After a node has lost its connection or was silent itself, it removes no other node for this time: the others were probably
 * silent for the same reason, such as a restart of the database.
 */
export const distrustMs = 2_000;
/** How often and for how long a node that comes back takes back what was counted as its death: a takeover can still be running. */
export const takeBackMs = { every: 1_000, for: 5_000 };
/** How long a node tries to take a requested shard that another node holds. */
export const requestMs = 5_000;
/** A requested shard is released once it has rested for this time. */
export const restMs = { asked: 1_000, called: 10_000 };

/** So many late looks in a row: after a busy event loop, the answer to a heartbeat may only wait to be read. */
const mostLate = 5;

/** Tells that a connection hangs, though it is not closed: its heartbeats get no answer while the event loop turns. */
export class HangWatch {
  #late = 0;

  /** Notes the age of the last heartbeat, in ms. Returns true once for each connection that hangs. */
  notice(ageMs: number): boolean {
    this.#late = ageMs > ownSilenceMs ? this.#late + 1 : 0;
    return this.#late === mostLate;
  }
}
