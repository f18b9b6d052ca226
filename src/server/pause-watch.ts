const lookMs = 250;
/** A process that did nothing for this time was frozen, or its event loop was blocked. */
const pausedMs = 1_000;
/** The process reads within this time what its connections held meanwhile. */
const afterMs = 500;

/** Notices that this process did nothing for a while: requests that it then reads can be of callers who have given up. */
export class PauseWatch {
  #lastLook = performance.now();
  #until = 0;
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#timer = setInterval(() => {
      const now = performance.now();
      if (now - this.#lastLook > pausedMs) this.#until = now + afterMs;
      this.#lastLook = now;
    }, lookMs).unref();
  }

  /** Whether a pause has just ended. */
  get hasJustEnded(): boolean {
    return performance.now() < this.#until;
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

/** Resolves once the process has read what its connections hold: a request, and then the end of its connection. */
export async function untilRead(): Promise<void> {
  for (let turns = 0; turns < 3; turns += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}
