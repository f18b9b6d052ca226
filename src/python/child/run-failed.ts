import { boundedException, exceptionLine, type PythonExceptionInfo } from "../python-error.ts";

/** Ends a run with an exception, of Python's or of the limits around it. */
export class RunFailed extends Error {
  readonly exception: PythonExceptionInfo;
  readonly traceback: string;

  constructor(
    exception: PythonExceptionInfo,
    options?: { readonly traceback: string; readonly cause: unknown },
  ) {
    super(exception.message, options);
    this.exception = boundedException(exception);
    this.traceback = options?.traceback ?? exceptionLine(exception);
  }
}

/** Ends a run that cannot begin: what it was given is not what Monty takes. */
export class RunRefused extends Error {}
