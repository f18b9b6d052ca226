/**
 * How much of a project is indexed while that takes a while. `total` is 0 until the files are counted. An answer
 * that carries it may lack what is not indexed yet.
 */
export interface IndexingProgress {
  /** Files that are indexed. */
  readonly done: number;
  readonly total: number;
}
