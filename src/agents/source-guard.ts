/** To whom a change of files is put down. */
export interface Writer {
  readonly agent: string;
  readonly instance_id: string;
  readonly session: string;
  readonly tool: string;
}

/** Keeps what models write apart from what the process runs. Paths are absolute, of this machine. */
export interface SourceGuard {
  /**
   * Whether the process has loaded a file, or would load one of that name in its place; with `removes`, also
   * a file below that folder.
   */
  isLoaded(file: string, removes: boolean): boolean;
  /**
   * The paths of a workspace, from its root, that commands leave as they are: what is protected and there, but for
   * what is granted. Without a folder of this machine, what may be there.
   */
  kept(hostRoot: string | undefined, granted: readonly string[]): readonly string[];
  /** A model has written a file: it is not loaded before a person accepts it. */
  wrote(file: string, writer: Writer): void;
  /** A model has written a file, and a person had looked at it before. */
  accepted(file: string): void;
  /** What a model asked for runs now, and may write any file until the function is called that this returns. */
  begin(writer: Writer): () => void;
}
