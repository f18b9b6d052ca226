/** What a `KitError` is made from; `code` is one of the codes in `protocol/error-code.ts`. */
export interface KitErrorInit<Code extends string = string> {
  readonly code: Code;
  /** Safe for any caller: no path of the machine, no key, no stack. */
  readonly message: string;
  /** What to do about it. Shown to the person at the terminal, never sent by a server. */
  readonly hint?: string;
  /** Machine-readable details that are as safe as the message. */
  readonly meta?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

/**
 * The one error class of kit. Branch on `code`, never on the text of `message`.
 */
export class KitError<Code extends string = string> extends Error {
  override readonly name = "KitError";
  readonly code: Code;
  readonly hint: string | undefined;
  readonly meta: Readonly<Record<string, unknown>> | undefined;

  constructor(init: KitErrorInit<Code>) {
    super(init.message, init.cause === undefined ? undefined : { cause: init.cause });
    this.code = init.code;
    this.hint = init.hint;
    this.meta = init.meta;
  }
}
