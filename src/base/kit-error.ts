/** The fields of a new `KitError`; `code` is one of the codes in `protocol/error-code.ts`. */
export interface KitErrorInit<Code extends string = string> {
  readonly code: Code;
  /** Safe for any caller: no path of the machine, no key, no stack. */
  readonly message: string;
  /** Advice on what to do about the error. The terminal shows it to the user; a server never sends it. */
  readonly hint?: string | undefined;
  /** Machine-readable details that are as safe as the message. */
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
  readonly cause?: unknown;
}

const brand = Symbol.for("kit.error");

/**
 * The error class of kit. Branch on `code`, never on the text of `message`. `instanceof` is also true for errors of
 * another copy of kit in the same process: a project can have its own copy next to the one that runs it.
 *
 * @example
 * ```ts
 * import { KitError, openAgents } from "kit";
 *
 * const agents = await openAgents();
 * try {
 *   await agents.run("release");
 * } catch (error) {
 *   if (error instanceof KitError && error.code === "workflow_not_found") console.error(error.hint);
 *   else throw error;
 * } finally {
 *   await agents.close();
 * }
 * ```
 */
export class KitError<Code extends string = string> extends Error {
  override readonly name: string = "KitError";
  readonly code: Code;
  readonly hint: string | undefined;
  readonly meta: Readonly<Record<string, unknown>> | undefined;

  static {
    markInstances(KitError, brand);
    Object.defineProperty(KitError, Symbol.hasInstance, { value: isInstance });
  }

  constructor(init: KitErrorInit<Code>) {
    super(init.message, init.cause === undefined ? undefined : { cause: init.cause });
    this.code = init.code;
    this.hint = init.hint;
    this.meta = init.meta;
  }
}

/** Implements `instanceof` for `KitError` and for every class that extends it. */
function isInstance(this: unknown, value: unknown): boolean {
  // A class that extends KitError recognizes its instances as any class does.
  if (this !== KitError) return Function.prototype[Symbol.hasInstance].call(this, value);
  return isMarked(value, brand) && hasFields(value);
}

/** Marks a class of errors, so that `isMarked` recognizes instances from every copy of kit. */
export function markInstances(errors: { readonly prototype: Error }, mark: symbol): void {
  Object.defineProperty(errors.prototype, mark, { value: true });
}

/** Whether a value is an error with this mark. A plain object with the same fields is not. */
export function isMarked(value: unknown, mark: symbol): value is Error {
  try {
    return isError(value) && Reflect.get(value, mark) === true;
  } catch {
    // Reading a property of hostile code's error can throw.
    return false;
  }
}

/** Recognizes errors of another realm, too, except in browsers without `Error.isError`. */
function isError(value: unknown): value is Error {
  const isNative: unknown = Reflect.get(Error, "isError");
  return typeof isNative === "function" ? isNative(value) === true : value instanceof Error;
}

// The mark can be forged, so check that the fields have the types that readers of an error rely on.
function hasFields(value: Error): boolean {
  try {
    const { code, message, hint, meta }: Partial<KitErrorInit> = value;
    const isText = typeof code === "string" && typeof message === "string";
    return isText && isOptional(hint, "string") && isOptional(meta, "object") && meta !== null;
  } catch {
    return false;
  }
}

function isOptional(value: unknown, type: "string" | "object"): boolean {
  return value === undefined || typeof value === type;
}
