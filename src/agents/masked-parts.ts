import type { EventBody } from "../protocol/event.ts";
import type { AssistantMessage } from "../protocol/message.ts";
import type { Find, SecretSearch } from "./secret-finder.ts";
import { MaskedText, maskValue, type SecretMask } from "./secrets.ts";

/**
 * As many characters of a secret may leave a kind that another kind follows, and only the rest is masked if it comes:
 * many a word ends like the beginning of some secret, and what comes after it would wait for the end of the answer.
 */
const maxGivenUp = 3;

/** A text is searched in steps of this length. */
const stepLength = 1_024;

/** Texts of several kinds that arrive in parts. */
export interface MaskedParts<Part> {
  push(part: Part, text: string): void;
  /** Adds a text, and emits nothing before the next push or the end. */
  add(part: Part, text: string): void;
  /** Emits the characters that were held back because a secret could have begun with them. */
  end(): void;
}

/** The text of a part that was not emitted. */
interface WaitingPart<Part> {
  readonly part: Part;
  readonly masked: MaskedText;
  /** The search of its kind. */
  readonly search: SecretSearch;
  /** The ends of the text in all parts, and in those of its kind. */
  end: number;
  endInKind: number;
}

/**
 * Masks the secrets in all parts joined, and in the parts of each kind joined: some read the thoughts of a model with its answer, others only
 * the answer. Emits all parts in their order; each one that a secret was taken from has a mark.
 */
export function createMaskedParts<Part>(
  mask: SecretMask,
  emit: (part: Part, text: string) => void,
  kindOf: (part: Part) => unknown = (part) => part,
): MaskedParts<Part> {
  const all = mask.search();
  const searches = new Map<unknown, SecretSearch>();
  let current: SecretSearch | undefined;
  let waiting: WaitingPart<Part>[] = [];
  const startIn = (search: SecretSearch, { masked, end, endInKind }: WaitingPart<Part>): number =>
    (search === all ? end : endInKind) - masked.text.length;
  const hide = (search: SecretSearch, find: Find): void => {
    for (let at = waiting.length - 1; at >= 0; at -= 1) {
      const part = waiting[at];
      if (part === undefined || (search !== all && search !== part.search)) continue;
      const from = startIn(search, part);
      part.masked.mask(find.start - from, find.end - from);
      if (find.start >= from) return;
    }
  };
  const add = (part: Part, text: string): void => {
    const kind = kindOf(part);
    const search = searches.get(kind) ?? mask.search();
    searches.set(kind, search);
    current = search;
    let last = waiting.at(-1);
    if (last?.part !== part) {
      last = { part, masked: new MaskedText(), search, end: all.length, endInKind: search.length };
      waiting.push(last);
    }
    for (let at = 0; at < text.length; at += stepLength) {
      const step = text.slice(at, at + stepLength);
      const inAll = all.read(step);
      const inKind = search.read(step);
      last.masked.text += step;
      last.end = all.length;
      last.endInKind = search.length;
      for (const find of inAll) hide(all, find);
      for (const find of inKind) hide(search, find);
    }
  };
  const openIn = (part: WaitingPart<Part>): number => {
    const { search } = part;
    const open = all.open - startIn(all, part);
    if (search !== current && search.openLength <= maxGivenUp) return open;
    return Math.min(open, search.open - startIn(search, part));
  };
  const release = (openOf: (part: WaitingPart<Part>) => number | undefined): void => {
    let done = 0;
    for (const one of waiting) {
      const text = one.masked.take(openOf(one));
      if (text !== "") emit(one.part, text);
      if (one.masked.text !== "") break;
      done += 1;
    }
    if (done > 0) waiting = waiting.slice(done);
  };
  return {
    add,
    push(part, text) {
      add(part, text);
      release(openIn);
    },
    end: () => release(() => undefined),
  };
}

type Content = AssistantMessage["content"];

/** Masks an answer, also a secret that begins in one of its parts and ends in another. */
export function maskAnswer(content: Content, mask: SecretMask): Content {
  const masked = maskValue(content, mask);
  const texts = content.map((part) => ("text" in part ? part.text : undefined));
  if (texts.filter((text) => text !== undefined).length < 2) return masked;
  const written = texts.map(() => "");
  const parts = createMaskedParts<number>(
    mask,
    (at, text) => {
      written[at] += text;
    },
    (at) => content[at]?.type,
  );
  for (const [at, text] of texts.entries()) if (text !== undefined) parts.add(at, text);
  parts.end();
  return masked.map((part, at) => {
    const text = written[at] ?? "";
    return "text" in part && part.text !== text ? { ...part, text } : part;
  });
}

/** Masks an event, except deltas and results, which are masked at their source. */
export function maskBody(body: EventBody, mask: SecretMask): EventBody {
  switch (body.type) {
    case "text_delta":
    case "reasoning_delta":
    case "tool_args_delta":
    case "tool_end":
      return body;
    default:
      return maskValue(body, mask);
  }
}
