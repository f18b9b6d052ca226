import type { GuidelineRecord } from "../guideline-record.ts";

type Searched = Pick<GuidelineRecord, "title" | "content">;

/** What is remembered of a record, so that most records are refused without a look at their text. */
interface Signature {
  /** A bit for every pair of neighbouring ASCII characters in the lower-case text. */
  readonly bits: Uint32Array;
  /** The lower-case text, once it was needed. */
  text?: string;
}

/** 1,024 bits: a text of 500 characters sets about a quarter of them. */
const signatureWords = 32;
const pairMask = signatureWords * 32 - 1;

// Records of unchanged files stay the same objects, so a change costs the signatures of its file.
const signatures = new WeakMap<Searched, Signature>();

/**
 * Makes the question of whether a record has every word of a query in its title or content, in any
 * case, as a part of a word too. An empty query asks for nothing and is answered with yes.
 */
export function createWordSearch(query: string): (record: Searched) => boolean {
  const words = [...new Set(query.toLowerCase().split(/\s+/))].filter((word) => word !== "");
  const wanted = words.map((word) => ({ word, pairs: pairsOf(word) }));
  return (record) => {
    if (wanted.length === 0) return true;
    const signature = signatureOf(record);
    const { bits } = signature;
    for (const { pairs } of wanted) {
      for (const pair of pairs) if (((bits[pair >> 5] ?? 0) & (1 << (pair & 31))) === 0) return false;
    }
    signature.text ??= `${record.title}\n${record.content}`.toLowerCase();
    for (const { word } of wanted) if (!signature.text.includes(word)) return false;
    return true;
  };
}

function signatureOf(record: Searched): Signature {
  const known = signatures.get(record);
  if (known !== undefined) return known;
  const bits = new Uint32Array(signatureWords);
  setPairs(bits, record.title);
  setPairs(bits, record.content);
  const signature: Signature = { bits };
  signatures.set(record, signature);
  return signature;
}

function setPairs(bits: Uint32Array, text: string): void {
  let before = 0;
  for (let at = 0; at < text.length; at += 1) {
    let code = text.charCodeAt(at);
    if (code > 127) {
      setPairsOfOtherScripts(bits, text);
      return;
    }
    if (code >= 65 && code <= 90) code += 32;
    const pair = pairOf(before, code);
    bits[pair >> 5] = (bits[pair >> 5] ?? 0) | (1 << (pair & 31));
    before = code;
  }
}

/** Letters such as the Kelvin sign become ASCII in lower case, so it is made by the rules of Unicode. */
function setPairsOfOtherScripts(bits: Uint32Array, text: string): void {
  for (const pair of pairsOf(text.toLowerCase())) {
    bits[pair >> 5] = (bits[pair >> 5] ?? 0) | (1 << (pair & 31));
  }
}

function pairsOf(lowerCase: string): readonly number[] {
  const pairs: number[] = [];
  for (let at = 1; at < lowerCase.length; at += 1) {
    const [before, code] = [lowerCase.charCodeAt(at - 1), lowerCase.charCodeAt(at)];
    if (before <= 127 && code <= 127) pairs.push(pairOf(before, code));
  }
  return pairs;
}

const pairOf = (before: number, code: number): number => (before * 37 + code * 5) & pairMask;
