import { isMarked, KitError, markInstances } from "../base/kit-error.ts";

/** A Python exception. */
export interface PythonExceptionInfo {
  /** `ValueError`, `TimeoutError`, … */
  readonly type: string;
  readonly message: string;
}

const errorMark = Symbol.for("kit.error.python");
const exceptionMark = Symbol.for("kit.error.python_exception");

/**
 * Thrown by a run whose code raised an exception, could not be compiled, or exceeded a limit.
 *
 * @example
 * ```ts
 * import { createPython, PythonError } from "kit/python";
 *
 * const python = createPython();
 * try {
 *   await python.createSession().run("1 / 0");
 * } catch (error) {
 *   if (error instanceof PythonError) console.error(error.exception.type); // ZeroDivisionError
 * } finally {
 *   await python.close();
 * }
 * ```
 */
export class PythonError extends KitError<"python_error"> {
  readonly exception: PythonExceptionInfo;
  /** The traceback as Python prints it, of the user's code only, with the hint if there is one. */
  readonly traceback: string;
  /** The output that the code printed before the error. */
  readonly stdout: string;

  static {
    markInstances(PythonError, errorMark);
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return isMarked(value, errorMark);
  }

  constructor(failure: {
    readonly exception: PythonExceptionInfo;
    readonly traceback: string;
    readonly stdout: string;
    /** Advice on what to write instead; also the last line of the traceback. */
    readonly hint?: string | undefined;
  }) {
    const { hint } = failure;
    const exception = boundedException(failure.exception);
    const traceback = bounded(failure.traceback, maxTracebackChars);
    super({ code: "python_error", message: exceptionLine(exception), hint });
    this.exception = exception;
    this.traceback = hint === undefined ? traceback : `${traceback}\nHint: ${hint}`;
    this.stdout = failure.stdout;
  }
}

/**
 * Throw it in a host function to raise this exception in Python: `new PythonException("KeyError", "no such user")`. An
 * unknown type becomes a RuntimeError.
 *
 * @example
 * ```ts
 * import { createPython, PythonException } from "kit/python";
 *
 * const python = createPython();
 * await python.createSession().run("user('ann')", {
 *   functions: {
 *     user: () => {
 *       throw new PythonException("KeyError", "no such user");
 *     },
 *   },
 * });
 * ```
 */
export class PythonException extends Error {
  override readonly name = "PythonException";
  readonly type: string;

  static {
    markInstances(PythonException, exceptionMark);
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return isMarked(value, exceptionMark);
  }

  constructor(type: string, message: string) {
    super(message);
    this.type = type;
  }
}

/** Formats an exception as `ValueError: too small`, shortened for a log. */
export function exceptionLine({ type, message }: PythonExceptionInfo): string {
  return bounded(message === "" ? type : `${type}: ${message}`, maxMessageChars);
}

const maxMessageChars = 2_000;
const maxTracebackChars = 20_000;

/** Shortens the texts of an exception, which come from the program and can have any length. */
export function boundedException({ type, message }: PythonExceptionInfo): PythonExceptionInfo {
  return { type: bounded(type, 200), message: bounded(message, maxMessageChars) };
}

function bounded(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}
