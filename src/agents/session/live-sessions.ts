import type { LiveSession } from "../agent-runtime.ts";

/** The sessions of an agent that this process has open. Of those that rest, the oldest are let go. */
export class LiveSessions {
  readonly #maxIdle: number;
  /** So many may rest before some are let go: a map whose first is taken away each time is slow to find the next. */
  readonly #letGoBeyond: number;
  readonly #lives = new Map<string, LiveSession>();
  // In the order of their last use.
  readonly #resting = new Map<string, LiveSession>();

  constructor(maxIdle: number) {
    this.#maxIdle = maxIdle;
    this.#letGoBeyond = maxIdle + Math.floor(maxIdle / 32);
  }

  get(name: string): LiveSession | undefined {
    return this.#lives.get(name);
  }

  /** A session that nobody has used yet rests: it may have been opened to be looked at. */
  add(name: string, live: LiveSession): LiveSession {
    this.#lives.set(name, live);
    this.rest(live);
    return live;
  }

  wake(live: LiveSession): void {
    const name = live.key.session;
    this.#resting.delete(name);
    // Where few may rest, it was let go as soon as it was there.
    if (!this.#lives.has(name)) this.#lives.set(name, live);
  }

  rest(live: LiveSession): void {
    const name = live.key.session;
    // It may have been let go while it was still at work.
    if (this.#lives.get(name) !== live) return;
    this.#resting.delete(name);
    this.#resting.set(name, live);
    if (this.#resting.size > this.#letGoBeyond) this.#letGo();
  }

  drop(live: LiveSession): void {
    const name = live.key.session;
    if (this.#lives.get(name) !== live) return;
    this.#lives.delete(name);
    this.#resting.delete(name);
  }

  all(): readonly LiveSession[] {
    return [...this.#lives.values()];
  }

  /** Whether an operation runs or waits in any of them. */
  get busy(): boolean {
    for (const live of this.#lives.values()) if (live.queue.busy) return true;
    return false;
  }

  clear(): void {
    this.#lives.clear();
    this.#resting.clear();
  }

  #letGo(): void {
    for (const [name, live] of this.#resting) {
      if (this.#resting.size <= this.#maxIdle) return;
      this.#resting.delete(name);
      if (live.evict()) this.#lives.delete(name);
    }
  }
}
