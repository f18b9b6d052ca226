import { KitError } from "../base/kit-error.ts";
import { noProgress, SecretFinder } from "./secret-finder.ts";

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
 * A mask for values in plain text, base64, base64url, hexadecimal, percent-encoding and JSON. Of two values with the
 * same beginning, the longer one counts; overlapping finds are masked as one.
 */
export function createSecretMask(given: readonly string[]): SecretMask {
  const values = [...new Set(given)].filter((value) => value.length >= minMaskedLength);
  // Prepared on first use: many applications mask nothing.
  let prepared: SecretFinder | undefined;
  const finder = (): SecretFinder => {
    prepared ??= new SecretFinder(values.flatMap(formsOf));
    return prepared;
  };
  let kept = { from: "", to: "" };
  const mask = (text: string): string => {
    if (values.length === 0 || text.length < minMaskedLength) return text;
    if (text === kept.from) return kept.to;
    const masked = render(text, finder().read(text, noProgress).finds);
    if (text.length >= minKeptLength) kept = { from: text, to: masked };
    return masked;
  };
  const stream = (): MaskedStream => (values.length === 0 ? asItIs : createMaskedStream(finder()));
  return Object.assign(mask, { values, stream });
}

const asItIs: MaskedStream = { push: (part) => part, end: () => "" };

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
  const said = { hint: hint === undefined ? undefined : mask(hint), meta: maskValue(meta, mask) };
  if (same && said.hint === hint && said.meta === meta) return error;
  const masked = new KitError({
    code,
    message: mask(error.message),
    ...(said.hint === undefined ? {} : { hint: said.hint }),
    ...(said.meta === undefined ? {} : { meta: said.meta }),
    ...(cause === undefined ? {} : { cause }),
  });
  return withStack(masked, stack);
}

/** Keeps the class name of the original error on its copy. */
function withName(copy: Error, error: Error): Error {
  const own = error.name === "Error" ? error.constructor.name : error.name;
  return Object.defineProperty(copy, "name", { value: own, configurable: true, writable: true });
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
  const forms = [value, ...parts, asJson, JSON.stringify(asJson).slice(1, -1)];
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

/** The certain part of the base64 of bytes inside a longer text, `before` bytes after a group of three. */
function base64Within(bytes: Uint8Array, before: number): string {
  let binary = "\0".repeat(before);
  for (const byte of bytes) binary += String.fromCharCode(byte);
  // The first characters hold bits of preceding bytes, and the last one bits of following bytes.
  const first = Math.ceil((before * 8) / 6);
  const whole = Math.floor((binary.length * 8) / 6);
  return btoa(binary).slice(first, whole);
}
