import { KitError } from "../base/kit-error.ts";

/** Replaces a secret in a text. */
const secretMark = "[secret]";

/** Shorter values would mask ordinary words. */
const minMaskedLength = 4;

/** A shorter encoding may be an ordinary word. */
const minEncodedLength = 8;

/** Longer values are not searched in encoded forms: a certificate is printed as plain text. */
const maxEncodedLength = 256;

/** From this length on, a line of a value counts as a secret: file tools put a number before each line. */
const minLineLength = 16;

/** Cause chains can be long, and even circular. */
const maxCauses = 8;

/** The result for a text of at least this size is cached: a system prompt is masked again and again. */
const minKeptLength = 1_024;

/** Removes secrets from texts. */
export interface SecretMask {
  (text: string): string;
  /** The masked values. */
  readonly values: readonly string[];
  /** Masks a text that arrives in parts, including secrets across parts. */
  stream(): MaskedStream;
}

export interface MaskedStream {
  /** Returns the text that is safe so far; a possible beginning of a secret is held back. */
  push(part: string): string;
  /** Returns the text that is held back, as `end` would, and goes on holding it back. */
  held(): string;
  /** Returns the text that was held back. */
  end(): string;
}

/** The granted secrets by name, and their values, which are masked in every output of the call. */
export function secretsFor(
  env: Readonly<Record<string, string | undefined>>,
  names: readonly string[],
): { readonly env: Readonly<Record<string, string>>; readonly values: readonly string[] } {
  const granted: Record<string, string> = {};
  for (const name of names) {
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (value === undefined) {
      throw new KitError({
        code: "invalid_request",
        message: `There is no secret named "${name}".`,
        hint: "Set it in the environment, or in a file named with --env.",
      });
    }
    granted[name] = value;
  }
  return { env: granted, values: Object.values(granted) };
}

const masks = new WeakMap<readonly string[], SecretMask>();

/** Masks as `createSecretMask` does; each list is prepared once. */
export function maskSecrets(text: string, values: readonly string[]): string {
  const mask = masks.get(values) ?? createSecretMask(values);
  masks.set(values, mask);
  return mask(text);
}

/**
 * A mask for values in plain text, base64, base64url, hexadecimal, percent-encoding and JSON, however its writer escapes. Of two values with the
 * same beginning, the longer one counts; overlapping finds are masked as one.
 */
export function createSecretMask(secrets: readonly string[]): SecretMask {
  const values = [...new Set(secrets)].filter((value) => value.length >= minMaskedLength);
  // Prepared on first use: many applications mask nothing.
  let prepared: SecretFinder | undefined;
  const finder = (): SecretFinder => {
    prepared ??= new SecretFinder(values.flatMap(formsOf));
    return prepared;
  };
  let lastLong = { from: "", to: "" };
  const mask = (text: string): string => {
    if (values.length === 0 || text.length < minMaskedLength) return text;
    if (text === lastLong.from) return lastLong.to;
    const masked = render(text, finder().read(text, noProgress).finds);
    if (text.length >= minKeptLength) lastLong = { from: text, to: masked };
    return masked;
  };
  const stream = (): MaskedStream => (values.length === 0 ? unchanged : createMaskedStream(finder()));
  return Object.assign(mask, { values, stream });
}

const unchanged: MaskedStream = { push: (part) => part, held: () => "", end: () => "" };

function createMaskedStream(finder: SecretFinder): MaskedStream {
  let progress = noProgress;
  return {
    push(part) {
      const text = progress.held + part;
      const { state, finds } = finder.read(text, progress);
      const open = finder.openFrom(text, { state, finds });
      if (open === text.length && finds.length === 0) {
        progress = noProgress;
        return text;
      }
      const closed = finds.filter(({ end }) => end <= open);
      progress = {
        state,
        held: text.slice(open),
        finds: finds.slice(closed.length).map(({ start, end }) => ({ start: start - open, end: end - open })),
      };
      return render(text.slice(0, open), closed);
    },
    held: () => render(progress.held, progress.finds),
    end() {
      const { held, finds } = progress;
      progress = noProgress;
      return render(held, finds);
    },
  };
}

function render(text: string, finds: readonly { readonly start: number; readonly end: number }[]): string {
  if (finds.length === 0) return text;
  let masked = "";
  let from = 0;
  for (const { start, end } of finds) {
    masked += text.slice(from, start) + secretMark;
    from = end;
  }
  return masked + text.slice(from);
}

/** Masks every text in a plain value; returns the same value if nothing changes. */
export function maskValue<Value>(value: Value, mask: (text: string) => string): Value {
  return maskAny(value, mask) as Value;
}

function maskAny(value: unknown, mask: (text: string) => string): unknown {
  if (typeof value === "string") return mask(value);
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  if (Array.isArray(value)) {
    const items: unknown[] = value.map((item) => maskAny(item, mask));
    return items.every((item, at) => item === value[at]) ? value : items;
  }
  let changed: Record<string, unknown> | undefined;
  const fields = value as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(fields)) {
    const field = fields[name];
    const masked = maskAny(field, mask);
    const key = mask(name);
    if (masked === field && key === name) continue;
    changed ??= { ...fields };
    if (key !== name) delete changed[name];
    changed[key] = masked;
  }
  return changed ?? value;
}

/** Masks all texts of an error and its causes: providers repeat keys in errors. */
export function maskError<Thrown>(error: Thrown, mask: (text: string) => string): Thrown {
  return maskThrown(error, mask) as Thrown;
}

function maskThrown(error: unknown, mask: (text: string) => string, depth = maxCauses): unknown {
  if (typeof error === "string") return mask(error);
  try {
    return error instanceof Error ? maskKnown(error, mask, depth) : error;
  } catch {
    // A getter of the error threw, so its texts cannot be masked: report none of them.
    return new Error("The error cannot be read.");
  }
}

function maskKnown(error: Error, mask: (text: string) => string, depth: number): Error {
  const cause =
    error.cause === undefined || depth === 0 ? undefined : maskThrown(error.cause, mask, depth - 1);
  const stack = mask(error.stack ?? "");
  const same =
    cause === error.cause && stack === (error.stack ?? "") && mask(error.message) === error.message;
  if (!(error instanceof KitError))
    return same ? error : withStack(withName(new Error(mask(error.message), { cause }), error), stack);
  const { code, hint, meta } = error;
  const maskedFields = { hint: hint === undefined ? undefined : mask(hint), meta: maskValue(meta, mask) };
  if (same && maskedFields.hint === hint && maskedFields.meta === meta) return error;
  const masked = new KitError({
    code,
    message: mask(error.message),
    hint: maskedFields.hint,
    meta: maskedFields.meta,
    cause,
  });
  return withStack(masked, stack);
}

/** Keeps the class name of the original error on its copy. */
function withName(copy: Error, error: Error): Error {
  const className = error.name === "Error" ? error.constructor.name : error.name;
  return Object.defineProperty(copy, "name", { value: className, configurable: true, writable: true });
}

function withStack(error: Error, stack: string): Error {
  error.stack = stack;
  return error;
}

/** All forms in which a value may appear in an output. */
function formsOf(value: string): readonly string[] {
  const lines = value.split(/[\r\n]+/).map((line) => line.trim());
  const parts = lines.length === 1 ? [] : lines.filter((line) => line.length >= minLineLength);
  const asJson = JSON.stringify(value).slice(1, -1);
  const forms = [value, ...parts, ...jsonFormsOf(asJson)];
  if (value.length > maxEncodedLength) return forms;
  const bytes = new TextEncoder().encode(value);
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const base64 = [0, 1, 2].map((before) => base64Within(bytes, before));
  const encoded = [
    encodeURIComponent(value.toWellFormed()),
    hex,
    hex.toUpperCase(),
    ...base64,
    ...base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_")),
  ];
  return [...forms, ...encoded.filter((form) => form.length >= minEncodedLength)];
}

/** The characters that writers of JSON such as Python, Go and PHP escape: none, non-ASCII, marks of HTML, and both. */
const escapedInJson = [/$^/g, /[^ -~]/g, /[<>&]/g, /[^ -~]|[<>&]/g];

/** The forms of a text in JSON, and in JSON within a text of JSON. */
function jsonFormsOf(asJson: string): readonly string[] {
  const forms = escapedInJson.flatMap((marks) => {
    const escaped = (toHex: (hex: string) => string): string =>
      asJson.replace(marks, (mark) => `\\u${toHex(mark.charCodeAt(0).toString(16)).padStart(4, "0")}`);
    return [escaped((hex) => hex), escaped((hex) => hex.toUpperCase())];
  });
  const all = new Set(forms.flatMap((form) => [form, form.replaceAll("/", "\\/")]));
  return [...all].flatMap((form) => [form, JSON.stringify(form).slice(1, -1)]);
}

/** The certain part of the base64 of bytes inside a longer text, `before` bytes after a group of three. */
function base64Within(bytes: Uint8Array, before: number): string {
  let binary = "\0".repeat(before);
  for (const byte of bytes) binary += String.fromCharCode(byte);
  // The first characters hold bits of preceding bytes, and the last one bits of following bytes.
  const first = Math.ceil((before * 8) / 6);
  const certainEnd = Math.floor((binary.length * 8) / 6);
  return btoa(binary).slice(first, certainEnd);
}

/** The position of a secret in a text: from `start` up to `end`. */
interface Find {
  readonly start: number;
  readonly end: number;
}

/** The state of a streamed search: the held-back end of the text, and finds in it. */
interface Progress {
  readonly state: number;
  readonly held: string;
  readonly finds: readonly Find[];
}

const noProgress: Progress = { state: 0, held: "", finds: [] };

/** From this length on, white space inside a secret is ignored: base64 is wrapped at 76 columns. */
const minBrokenLength = 16;

/**
 * Finds many texts in one pass (Aho-Corasick): one step per character, for any number of texts. White space inside a
 * long text is ignored.
 */
class SecretFinder {
  readonly #classOf = new Map<number, number>();
  /** The classes of ASCII characters, which are the most frequent. */
  readonly #classOfAscii = new Uint16Array(128);
  /** The next state by state and class of the character; state 0 is the beginning. */
  readonly #next: Int32Array;
  /** How many characters of some text a state has seen. */
  readonly #depth: Int32Array;
  /** The state of the longest text that ends here; 0 for none. */
  readonly #ends: Int32Array;
  /** The state of the longest end of what was seen that begins another text. */
  readonly #fallback: Int32Array;
  readonly #classes: number;
  #states = 0;
  /** As given, with their white space. */
  readonly #texts: ReadonlySet<string>;

  constructor(texts: readonly string[]) {
    this.#texts = new Set(texts);
    const stripped = new Set(
      texts.map((text) => text.replace(/[ \t-\r]+/g, "")).filter((text) => text !== ""),
    );
    for (const text of stripped) for (let at = 0; at < text.length; at += 1) this.#learn(text.charCodeAt(at));
    this.#classes = this.#classOf.size + 1;
    const length = [...stripped].reduce((sum, text) => sum + text.length, 1);
    this.#next = new Int32Array(length * this.#classes);
    this.#depth = new Int32Array(length);
    this.#ends = new Int32Array(length);
    this.#fallback = new Int32Array(length);
    for (const text of stripped) this.#add(text);
    this.#link();
  }

  #learn(code: number): void {
    if (this.#classOf.has(code)) return;
    this.#classOf.set(code, this.#classOf.size + 1);
    if (code < 128) this.#classOfAscii[code] = this.#classOf.size;
  }

  #add(text: string): void {
    let state = 0;
    for (let at = 0; at < text.length; at += 1) {
      const edge = state * this.#classes + (this.#classOf.get(text.charCodeAt(at)) ?? 0);
      if (this.#next[edge] === 0) {
        this.#states += 1;
        this.#next[edge] = this.#states;
        this.#depth[this.#states] = at + 1;
      }
      state = this.#next[edge] ?? 0;
    }
    this.#ends[state] = state;
  }

  /** Breadth first: what a state falls back to is shorter, so it is known already. */
  #link(): void {
    const queue = [0];
    for (let head = 0; head < queue.length; head += 1) {
      const state = queue[head] ?? 0;
      const fallback = this.#fallback[state] ?? 0;
      if (this.#ends[state] === 0) this.#ends[state] = this.#ends[fallback] ?? 0;
      for (let kind = 1; kind < this.#classes; kind += 1) {
        const edge = state * this.#classes + kind;
        const fallbackState = state === 0 ? 0 : (this.#next[fallback * this.#classes + kind] ?? 0);
        const to = this.#next[edge] ?? 0;
        if (to === 0) this.#next[edge] = fallbackState;
        else {
          this.#fallback[to] = fallbackState;
          queue.push(to);
        }
      }
    }
  }

  /** Continues the search after the held-back text. */
  read(text: string, before: Progress): { readonly state: number; readonly finds: readonly Find[] } {
    const finds: Find[] = [...before.finds];
    const next = this.#next;
    const ascii = this.#classOfAscii;
    const classes = this.#classes;
    let { state } = before;
    for (let at = before.held.length; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (isSpace(code)) continue;
      const kind = code < 128 ? (ascii[code] ?? 0) : (this.#classOf.get(code) ?? 0);
      // Nothing begins with class 0, and state 0 has no end.
      state = kind === 0 ? 0 : (next[state * classes + kind] ?? 0);
      if (state !== 0 && this.#ends[state] !== 0) this.#note(finds, text, { at, state });
    }
    return { state, finds };
  }

  /** Records the longest text that ends at a position; overlapping finds become one. */
  #note(finds: Find[], text: string, { at, state }: { readonly at: number; readonly state: number }): void {
    for (let end = this.#ends[state] ?? 0; end !== 0; end = this.#ends[this.#fallback[end] ?? 0] ?? 0) {
      const length = this.#depth[end] ?? 0;
      let start = startOf(text, at, length);
      if (length < minBrokenLength && !this.#texts.has(text.slice(start, at + 1))) continue;
      for (let last = finds.at(-1); last !== undefined && last.end > start; last = finds.at(-1)) {
        start = Math.min(start, last.start);
        finds.pop();
      }
      finds.push({ start, end: at + 1 });
      return;
    }
  }

  /** Where a secret may start that continues in the next part. */
  openFrom(text: string, { state, finds }: Pick<Progress, "state" | "finds">): number {
    const depth = this.#depth[state] ?? 0;
    let open = depth === 0 ? text.length : startOf(text, text.length - 1, depth);
    for (let last = finds.length - 1; last >= 0; last -= 1) {
      const find = finds[last];
      if (find === undefined || find.end <= open) break;
      open = Math.min(open, find.start);
    }
    return open;
  }
}

/** The start of a text of `length` characters that ends at a position, without white space. */
function startOf(text: string, at: number, length: number): number {
  let start = at + 1;
  for (let left = length; left > 0; left -= 1) {
    start -= 1;
    while (isSpace(text.charCodeAt(start))) start -= 1;
  }
  return start;
}

function isSpace(code: number): boolean {
  return code === 32 || (code < 14 && code > 8);
}
