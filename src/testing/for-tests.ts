import { afterAll, beforeAll } from "vitest";

/** Starts something for the tests of the file, and ends it after them. Its fields are there from the first test on. */
export function forTests<Started extends object>(
  start: () => Promise<Started>,
  end: (started: Started) => Promise<unknown>,
): Started {
  const started = {} as Started;
  beforeAll(async () => {
    Object.assign(started, await start());
  });
  afterAll(() => end(started));
  return started;
}
