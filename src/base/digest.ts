/**
 * A short name for a text: 106 bits in hexadecimal, the same in every process. Quick, and good enough to tell
 * texts of one's own apart; nothing that keeps a secret or withstands an attack.
 */
export function digestOf(text: string): string {
  return hash(text, 0) + hash(text, 0x9e3779b9);
}

/** 53 bits of a text (cyrb53). */
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
