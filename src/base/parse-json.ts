import { attempt } from "./attempt.ts";
import { KitError } from "./kit-error.ts";

export interface ParseJsonOptions {
  /** Levels of nested arrays and objects; 1 is a flat object. */
  readonly maxDepth: number;
}

/**
 * Parses JSON text that comes from outside kit.
 *
 * It is stricter than `JSON.parse`: it refuses an object that repeats a key, because two parsers can read different
 * values from it (RFC 8259, section 4), and text nested deeper than `maxDepth`. It takes linear time. Throws
 * `invalid_json`.
 */
export function parseJson(text: string, options: ParseJsonOptions): unknown {
  const structure = readStructure(text, options.maxDepth);
  if (structure.tooDeep) {
    throw invalidJson(`It is nested deeper than ${options.maxDepth} levels.`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw invalidJson(whereItBreaks(cause), cause);
  }
  if (structure.duplicate !== undefined) {
    throw invalidJson(
      `The key ${JSON.stringify(structure.duplicate.slice(0, 80))} occurs twice in one object.`,
    );
  }
  return value;
}

function invalidJson(reason: string, cause?: unknown): KitError {
  return new KitError({ code: "invalid_json", message: `The text is not acceptable JSON. ${reason}`, cause });
}

/** Returns the position only: V8's message also quotes the text, which can be long or secret. */
function whereItBreaks(cause: unknown): string {
  const place = cause instanceof SyntaxError ? /\(line \d+ column \d+\)/.exec(cause.message)?.[0] : undefined;
  return place === undefined ? "It is incomplete or malformed." : `It is malformed ${place}.`;
}

interface Structure {
  readonly tooDeep: boolean;
  readonly duplicate?: string;
}

/**
 * Reads the brackets and keys of a text without building values. The result means nothing for text that is not JSON,
 * which the parser then refuses.
 */
function readStructure(text: string, maxDepth: number): Structure {
  // One entry per open bracket: the keys seen so far of an object, nothing for an array.
  const open: (Set<string> | undefined)[] = [];
  let expectsKey = false;
  let duplicate: string | undefined;
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case "{":
      case "[":
        if (open.length === maxDepth) return { tooDeep: true };
        expectsKey = text[at] === "{";
        open.push(expectsKey ? new Set() : undefined);
        break;
      case "}":
      case "]":
        open.pop();
        expectsKey = false;
        break;
      case ",":
        expectsKey = open.at(-1) !== undefined;
        break;
      case '"': {
        const end = endOfString(text, at);
        const keys = expectsKey ? open.at(-1) : undefined;
        if (keys !== undefined && duplicate === undefined) {
          const raw = text.slice(at + 1, end);
          // `"\u0061"` and `"a"` are the same key.
          const key = raw.includes("\\") ? attempt(() => String(JSON.parse(`"${raw}"`)), raw) : raw;
          if (keys.has(key)) duplicate = key;
          keys.add(key);
        }
        expectsKey = false;
        at = end;
        break;
      }
    }
  }
  return duplicate === undefined ? { tooDeep: false } : { tooDeep: false, duplicate };
}

/** The index of the closing quote of the string that opens at `start`, or the length of the text. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1) {
    let backslashes = 0;
    while (text[end - 1 - backslashes] === "\\") backslashes++;
    if (backslashes % 2 === 0) return end;
    end = text.indexOf('"', end + 1);
  }
  return text.length;
}
