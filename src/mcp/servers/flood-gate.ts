/** How much may pass a gate. */
export interface FloodLimits {
  /** Bytes that may come at once, after a rest. */
  readonly burstBytes: number;
  /** Bytes that may come in a second for as long as it takes. */
  readonly bytesPerSecond: number;
  /** Bytes that a line counts at least: reading a blank one costs time, too. */
  readonly lineBytes: number;
}

/** Tells a flood from a lively server. */
export interface FloodGate {
  /** Counts what came. False once more came than a server may send. */
  take(bytes: number, lines: number): boolean;
}

/** Creates a gate of `burstBytes` that fills again by `bytesPerSecond`. `now` is in milliseconds. */
export function createFloodGate(limits: FloodLimits, now: () => number = () => performance.now()): FloodGate {
  let left = limits.burstBytes;
  let at = now();
  return {
    take(bytes, lines) {
      const time = now();
      const refilled = (Math.max(0, time - at) / 1000) * limits.bytesPerSecond;
      left = Math.min(limits.burstBytes, left + refilled) - Math.max(bytes, lines * limits.lineBytes);
      at = time;
      return left >= 0;
    },
  };
}
