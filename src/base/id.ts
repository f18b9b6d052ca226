// Crockford's base 32: no I, L, O, U.
const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

let lastMs = 0;
let lastRandom: number[] = [];

/**
 * A ULID: 48 bits of time, 80 of randomness, 26 characters that sort by time; strictly ascending
 * within this process.
 *
 * @see https://github.com/ulid/spec
 */
export function createUlid(now: number = Date.now()): string {
  if (now <= lastMs) increment(lastRandom);
  else {
    lastMs = now;
    lastRandom = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte & 31);
  }
  let time = "";
  for (let rest = lastMs, digit = 0; digit < 10; digit += 1, rest = Math.floor(rest / 32)) {
    time = alphabet[rest % 32] + time;
  }
  let random = "";
  for (const digit of lastRandom) random += alphabet[digit];
  return time + random;
}

function increment(digits: number[]): void {
  for (let index = digits.length - 1; index >= 0; index -= 1) {
    const digit = digits[index] ?? 0;
    digits[index] = digit === 31 ? 0 : digit + 1;
    if (digit !== 31) return;
  }
}

/** An id such as `op_01J…`: the prefix says what it names. */
export function createId(prefix: string): string {
  return `${prefix}_${createUlid()}`;
}
