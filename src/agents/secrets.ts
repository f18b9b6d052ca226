import { KitError } from "../base/kit-error.ts";
import { type Find, SecretFinder, type SecretSearch } from "./secret-finder.ts";

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
  /** Begins a search for the values. */
  search(): SecretSearch;
}

export interface MaskedStream {
  /** Returns the text that is safe so far; a possible beginning of a secret is held back. */
  push(part: string): string;
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

/** A text that is told before its call is granted these secrets. The call refuses a name without a value. */
export function maskedBeforeGrant(
  text: string,
  names: readonly string[] | undefined,
  {
    env,
    mask,
  }: { readonly env: Readonly<Record<string, string | undefined>>; readonly mask?: SecretMask | undefined },
): string {
  if (names === undefined) return text;
  const granted = names.map((name) => (Object.hasOwn(env, name) ? (env[name] ?? "") : ""));
  return createSecretMask([...(mask?.values ?? []), ...granted])(text);
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
    const finds = finder().search().read(text);
    const masked = finds.length === 0 ? text : new MaskedText(text, finds).take();
    if (text.length >= minKeptLength) lastLong = { from: text, to: masked };
    return masked;
  };
  const search = (): SecretSearch => finder().search();
  const stream = (): MaskedStream => (values.length === 0 ? unchanged : createMaskedStream(search()));
  return Object.assign(mask, { values, stream, search });
}

const unchanged: MaskedStream = { push: (part) => part, end: () => "" };

function createMaskedStream(search: SecretSearch): MaskedStream {
  const masked = new MaskedText();
  /** The position of what is held back. */
  const from = (): number => search.length - masked.text.length;
  return {
    push(part) {
      const finds = search.read(part);
      masked.text += part;
      for (const { start, end } of finds) masked.mask(start - from(), end - from());
      return masked.take(search.open - from());
    },
    end: () => masked.take(),
  };
}

/** A text that waits, and the secrets in it. */
export class MaskedText {
  text: string;
  /** In their order; overlapping ones are one. */
  #finds: Find[] = [];

  constructor(text = "", finds: readonly Find[] = []) {
    this.text = text;
    for (const { start, end } of finds) this.mask(start, end);
  }

  /** Masks a part, of which what was taken counts no more. */
  mask(from: number, to: number): void {
    let start = Math.max(from, 0);
    let end = Math.min(to, this.text.length);
    if (start >= end) return;
    let after = this.#finds.length;
    while (after > 0 && (this.#finds[after - 1]?.start ?? 0) >= end) after -= 1;
    let first = after;
    for (
      let find = this.#finds[first - 1];
      find !== undefined && find.end > start;
      find = this.#finds[first - 1]
    ) {
      start = Math.min(start, find.start);
      end = Math.max(end, find.end);
      first -= 1;
    }
    this.#finds.splice(first, after - first, { start, end });
  }

  /** Takes the text up to a position, but no part of a secret that goes on after it. */
  take(to = this.text.length): string {
    let end = Math.min(to, this.text.length);
    let closed = this.#finds.length;
    for (
      let find = this.#finds[closed - 1];
      find !== undefined && find.end > end;
      find = this.#finds[closed - 1]
    ) {
      end = Math.min(end, find.start);
      closed -= 1;
    }
    if (end <= 0) return "";
    let taken = "";
    let from = 0;
    for (const find of this.#finds.splice(0, closed)) {
      taken += this.text.slice(from, find.start) + secretMark;
      from = find.end;
    }
    taken += this.text.slice(from, end);
    this.text = this.text.slice(end);
    this.#finds = this.#finds.map((find) => ({ start: find.start - end, end: find.end - end }));
    return taken;
  }
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
