/** How often the files are checked, in ms: a check costs a `stat` for each of a few files. */
const defaultPeriodMs = 300;

/** Polls for a change and then calls `reload`. Errors are reported, and polling continues. */
export function followChanges(options: {
  readonly hasChanged: () => Promise<boolean>;
  readonly reload: () => Promise<void>;
  readonly onError: (error: unknown) => void;
  readonly periodMs?: number;
}): AsyncDisposable {
  let isClosed = false;
  let looking: Promise<void> = Promise.resolve();
  const checkForChanges = async (): Promise<void> => {
    try {
      if (await options.hasChanged()) await options.reload();
    } catch (error) {
      options.onError(error);
    }
    if (!isClosed) timer = setTimeout(begin, options.periodMs ?? defaultPeriodMs);
  };
  const begin = (): void => {
    looking = checkForChanges();
  };
  let timer = setTimeout(begin, options.periodMs ?? defaultPeriodMs);
  return {
    async [Symbol.asyncDispose]() {
      isClosed = true;
      clearTimeout(timer);
      await looking;
    },
  };
}
