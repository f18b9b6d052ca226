import { forTests } from "./for-tests.ts";
import { createTemporaryRepository, type TemporaryRepository } from "./temporary-repository.ts";

/** `createTemporaryRepository` for the tests of the file. */
export function repositoryForTests(files?: Readonly<Record<string, string>>): TemporaryRepository {
  return forTests(
    () => createTemporaryRepository(files),
    (repository) => repository[Symbol.asyncDispose](),
  );
}
