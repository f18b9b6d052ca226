import type { Listing } from "./trees.ts";

/** The change that is judged: trees as files of the repository, texts as files of the project. */
export interface JudgedChange {
  readonly base: Listing;
  readonly head: Listing;
  /** The changed files of the project, relative to its root. */
  readonly paths: readonly string[];
  readonly before: ReadonlyMap<string, string>;
  readonly after: ReadonlyMap<string, string>;
  /** Whether a file of the repository, by its path from the top, belongs to the tests. */
  readonly isOfTests: (path: string) => boolean;
  /** The same for a file of the project. */
  readonly isTest: (path: string) => boolean;
  /** Whether a file of the project is a specification or a document, which no test can notice. */
  readonly isDocument: (path: string) => boolean;
}
