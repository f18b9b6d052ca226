// Crockford's base 32: no I, L, O, U.
const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** The last random digits, which count up within a millisecond; the digits before them stay. */
const countedDigits = 4;
const countLimit = 32 ** countedDigits;

// A call for random bytes costs more than making an id of them, so one call fetches the bytes of many ids.
const pool = new Uint8Array(1_024);
let used = pool.length;

let lastMs = -1;
// The time and the leading random digits, which stand before the counted digits.
let prefix = "";
let count = 0;

/**
 * Creates a ULID: 48 bits of time and 80 of randomness in 26 characters that sort by time. The ULIDs of one process
 * are strictly ascending, even if the clock goes back.
 *
 * @see https://github.com/ulid/spec
 */
export function createUlid(now: number = Date.now()): string {
  if (now > lastMs) start(now);
  else {
    count += 1;
    // After a million ids in one millisecond, the next ids carry the next millisecond.
    if (count === countLimit) start(lastMs + 1);
  }
  // The last digits as one text: the general way makes a text for every digit.
  const counted = String.fromCharCode(
    alphabet.charCodeAt(count >> 15),
    alphabet.charCodeAt((count >> 10) & 31),
    alphabet.charCodeAt((count >> 5) & 31),
    alphabet.charCodeAt(count & 31),
  );
  return prefix + counted;
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
  // The count starts in the lower half, so that half a million ids fit before the next millisecond is needed.
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

/** Returns the lowest id of a millisecond, to compare ids with a time. Other processes use their own machine's clock. */
export function lowestId(prefix: string, ms: number): string {
  return `${prefix}_${digits(ms, 10)}${"0".repeat(16)}`;
}

/** Creates an id such as `op_01J…`; the prefix names the kind of record. */
export function createId(prefix: string): string {
  return `${prefix}_${createUlid()}`;
}

/**
 * Returns a short hash of a text: 106 bits in hexadecimal, the same in every process. It is fast and tells kit's own
 * texts apart; it is no cryptographic hash.
 */
export function digestOf(text: string): string {
  return hash(text, 0) + hash(text, 0x9e3779b9);
}

/** The hash cyrb53: 53 bits. */
function hash(text: string, seed: number): string {
  let high = 0xdeadbeef ^ seed;
  let low = 0x41c6ce57 ^ seed;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    high = Math.imul(high ^ unit, 2654435761);
    low = Math.imul(low ^ unit, 1597334677);
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
  return (4294967296 * (2097151 & low) + (high >>> 0)).toString(16).padStart(14, "0");
}
