import { boundedException, exceptionLine, type PythonExceptionInfo } from "../python-error.ts";

/** Ends a run with an exception of Python or of a limit. */
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

/** Ends a run that cannot start, because Monty does not accept its inputs or limits. */
export class RunRefused extends Error {}
