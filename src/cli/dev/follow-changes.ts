/** Between two looks at the files, in ms: a look costs a `stat` for each of a few files. */
const defaultPeriodMs = 300;

/**
 * Looks again and again whether something has changed, and reloads it. What fails is reported, and the
 * looking goes on.
 */
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
