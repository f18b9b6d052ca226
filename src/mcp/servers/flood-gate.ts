/** The rate that a gate allows. */
export interface FloodLimits {
  /** Bytes allowed at once after a quiet time. */
  readonly burstBytes: number;
  /** Bytes allowed per second in the long run. */
  readonly bytesPerSecond: number;
  /** Bytes that each line counts at least, because a blank line costs time too. */
  readonly lineBytes: number;
}

/** A rate limit for a server's output. */
export interface FloodGate {
  /** Counts received output. Returns false if the server exceeds its rate. */
  take(bytes: number, lines: number): boolean;
}

/** Creates a token bucket of `burstBytes` that refills by `bytesPerSecond`. `now` is in milliseconds. */
export function createFloodGate(limits: FloodLimits, now: () => number = () => performance.now()): FloodGate {
  let bytesLeft = limits.burstBytes;
  let at = now();
  return {
    take(bytes, lines) {
      const time = now();
      const refilled = (Math.max(0, time - at) / 1000) * limits.bytesPerSecond;
      bytesLeft =
        Math.min(limits.burstBytes, bytesLeft + refilled) - Math.max(bytes, lines * limits.lineBytes);
      at = time;
      return bytesLeft >= 0;
    },
  };
}
