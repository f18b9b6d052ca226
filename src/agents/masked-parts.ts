import type { AssistantMessage } from "../protocol/message.ts";
import { maskValue, type SecretMask } from "./secrets.ts";

/** Texts of several kinds that arrive in parts. */
export interface MaskedParts<Kind> {
  push(kind: Kind, text: string): void;
  /** Emits the characters that were held back because a secret could have begun with them. */
  end(): void;
}

/** Masks secrets also across kinds, such as from the thoughts of a model to its answer: whoever reads both has all of them. */
export function createMaskedParts<Kind>(
  mask: SecretMask,
  emit: (kind: Kind, text: string) => void,
): MaskedParts<Kind> {
  const stream = mask.stream();
  let last: Kind | undefined;
  /** The held-back texts of earlier kinds, in their order. */
  let waiting: { readonly kind: Kind; text: string }[] = [];
  const pass = (safe: string): void => {
    let text = safe;
    while (text !== "") {
      const [first] = waiting;
      if (first === undefined) break;
      const same = commonLength(first.text, text);
      if (same > 0) emit(first.kind, text.slice(0, same));
      text = text.slice(same);
      first.text = first.text.slice(same);
      if (first.text === "") waiting.shift();
      // A secret began here, and goes on in another kind.
      else if (text !== "") waiting = [];
    }
    if (text !== "" && last !== undefined) emit(last, text);
  };
  return {
    push(kind, text) {
      if (last !== undefined && last !== kind) {
        const before = waiting.reduce((length, part) => length + part.text.length, 0);
        const held = stream.held().slice(before);
        if (held !== "") waiting.push({ kind: last, text: held });
      }
      last = kind;
      pass(stream.push(text));
    },
    end() {
      pass(stream.end());
      waiting = [];
    },
  };
}

function commonLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}

type Content = AssistantMessage["content"];

/** Masks an answer, also a secret that begins in one of its parts and ends in another. */
export function maskAnswer(content: Content, mask: SecretMask): Content {
  const masked = maskValue(content, mask);
  const texts = content.map((part) => ("text" in part ? part.text : undefined));
  if (texts.filter((text) => text !== undefined).length < 2) return masked;
  const written = texts.map(() => "");
  const parts = createMaskedParts<number>(mask, (at, text) => {
    written[at] += text;
  });
  for (const [at, text] of texts.entries()) if (text !== undefined) parts.push(at, text);
  parts.end();
  return masked.map((part, at) => {
    const text = written[at] ?? "";
    return "text" in part && part.text !== text ? { ...part, text } : part;
  });
}
