import { ownSilenceMs } from "./ownership-times.ts";

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
