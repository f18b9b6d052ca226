import { hash } from "node:crypto";

/** Where an SDK takes the ids of new spans from: its option `idGenerator`. */
export interface IdGenerator {
  generateTraceId(): string;
  generateSpanId(): string;
}

/** What the span is of that begins now; the SDK asks for its ids while it begins. */
let seed: string | undefined;

/**
 * Begins a span of which every process makes the same ids, where its SDK has `createIdGenerator()`: what a killed
 * process had sent then hangs together with what the next one sends.
 */
export function withSeed<Value>(of: string, begin: () => Value): Value {
  seed = of;
  try {
    return begin();
  } finally {
    seed = undefined;
  }
}

/**
 * Ids for the SDK's tracer provider: of kit's spans the same in every process, of all others random. `kit start --otel`
 * sets it; an SDK of your own has it as `new TracerProvider({ idGenerator: createIdGenerator() })`.
 */
export function createIdGenerator(): IdGenerator {
  return {
    generateTraceId: () => (seed === undefined ? random(16) : hash("sha256", `trace ${seed}`).slice(0, 32)),
    generateSpanId: () => (seed === undefined ? random(8) : hash("sha256", `span ${seed}`).slice(0, 16)),
  };
}

function random(bytes: number): string {
  let text = "";
  for (const byte of crypto.getRandomValues(new Uint8Array(bytes)))
    text += byte.toString(16).padStart(2, "0");
  return /^0+$/.test(text) ? random(bytes) : text;
}
