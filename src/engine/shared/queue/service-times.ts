import { Chain, type Link } from "./chain.ts";

/** How much a new duration counts beside those that were measured before. */
const weight = 0.2;
/** No estimate is worth more: what waits for a person may take days. */
const longestMs = 600_000;

/** One work from its begin to its end. */
export interface Service extends Link<Service> {
  readonly begunAt: number;
}

/**
 * How fast a line moves: how long its works take, and how long those at work have been at it. From that follows when
 * there will be room in it again. Times come from a clock that never jumps.
 */
export class ServiceTimes {
  readonly #running = new Chain<Service>();
  #meanMs: number | undefined;
  /** Senders who were told to come back, and have not been let in yet. */
  #turnedAway = 0;

  get meanMs(): number | undefined {
    return this.#meanMs;
  }

  begin(now: number): Service {
    const service: Service = { begunAt: now };
    this.#running.push(service);
    if (this.#turnedAway > 0) this.#turnedAway -= 1;
    return service;
  }

  end(service: Service, now: number): void {
    this.#running.remove(service);
    const ms = now - service.begunAt;
    this.#meanMs = this.#meanMs === undefined ? ms : this.#meanMs * (1 - weight) + ms * weight;
  }

  /** In how many ms there is room for one more, behind those who were told to come back before. `usualMs`: for what was never measured. */
  retryDelay(now: number, usualMs: number): number {
    const place = this.#turnedAway;
    this.#turnedAway += 1;
    const abreast = Math.max(1, this.#running.size);
    const meanMs = this.#meanMs ?? usualMs;
    // The work that began first ends first; then as many again, and so on.
    let ahead = place % abreast;
    let untilEndMs = meanMs;
    for (const { begunAt } of this.#running) {
      untilEndMs = meanMs - (now - begunAt);
      if (ahead === 0) break;
      ahead -= 1;
    }
    // One that takes longer than is usual may take as long again.
    const nextMs = untilEndMs > 0 ? untilEndMs : Math.max(meanMs, -untilEndMs) / abreast;
    return Math.min(longestMs, Math.floor(place / abreast) * meanMs + nextMs);
  }
}
