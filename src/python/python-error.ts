import { isMarked, KitError, markInstances } from "../base/kit-error.ts";

/** An exception as Python names it. */
export interface PythonExceptionInfo {
  /** `ValueError`, `TimeoutError`, … */
  readonly type: string;
  readonly message: string;
}

const errorMark = Symbol.for("kit.error.python");
const exceptionMark = Symbol.for("kit.error.python_exception");

/** Thrown by a run whose code raised an exception, could not be compiled, or passed a limit. */
export class PythonError extends KitError<"python_error"> {
  readonly exception: PythonExceptionInfo;
  /** As Python prints it, with the user's code only. */
  readonly traceback: string;
  /** What had been printed by then. */
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
  }) {
    super({ code: "python_error", message: exceptionLine(failure.exception) });
    this.exception = failure.exception;
    this.traceback = failure.traceback;
    this.stdout = failure.stdout;
  }
}

/**
 * Throw it in a function of the host to raise this very exception in Python: `new PythonException("KeyError",
 * "no such user")`. A type that Python does not know becomes a RuntimeError.
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

/** `ValueError: too small`, cut to a length that fits a log. */
export function exceptionLine({ type, message }: PythonExceptionInfo): string {
  const line = message === "" ? type : `${type}: ${message}`;
  return line.length > 2_000 ? `${line.slice(0, 2_000)}…` : line;
}
