// Crockford's base 32: no I, L, O, U.
const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** Digits of randomness that are counted up within a millisecond; the ones before them stay. */
const countedDigits = 4;
const countLimit = 32 ** countedDigits;

// Asking the system for random bytes costs more than the id that is made of them, so many are asked for at a time.
const pool = new Uint8Array(1_024);
let used = pool.length;

let lastMs = -1;
// Time and the leading random digits, as they stand before the count.
let prefix = "";
let count = 0;

/**
 * A ULID: 48 bits of time, 80 of randomness, 26 characters that sort by time; strictly ascending
 * within this process, also when the clock goes back.
 *
 * @see https://github.com/ulid/spec
 */
export function createUlid(now: number = Date.now()): string {
  if (now > lastMs) start(now);
  else {
    count += 1;
    // A million ids in one millisecond: the next ones take the time of the next.
    if (count === countLimit) start(lastMs + 1);
  }
  return prefix + digits(count, countedDigits);
}

function start(ms: number): void {
  lastMs = ms;
  prefix = digits(ms, 10);
  if (used === pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  const digitsEnd = used + 16 - countedDigits;
  for (let index = used; index < digitsEnd; index += 1) prefix += alphabet[(pool[index] ?? 0) & 31];
  // Starting in the lower half leaves room to count before the next millisecond is borrowed.
  count = (((pool[used + 14] ?? 0) << 8) | (pool[used + 15] ?? 0)) * 8;
  used += 16;
}

function digits(value: number, length: number): string {
  let text = "";
  for (let rest = value, digit = 0; digit < length; digit += 1, rest = Math.floor(rest / 32)) {
    text = alphabet[rest % 32] + text;
  }
  return text;
}

/** The lowest id of a millisecond: ids of other processes sort by the time of day of their machines. */
export function lowestId(prefix: string, ms: number): string {
  return `${prefix}_${digits(ms, 10)}${"0".repeat(16)}`;
}

/** An id such as `op_01J…`: the prefix says what it names. */
export function createId(prefix: string): string {
  return `${prefix}_${createUlid()}`;
}
