/** The answer that a model without latency gives to every prompt. */
export type Script = "answer" | "tools" | "deltas";

/** Tool calls of the `tools` script before its answer: a loop of five turns. */
export const toolCallsPerLoop = 4;

/** Deltas of one answer of the `deltas` script. */
export const deltasPerAnswer = 10_000;

export interface OpenOptions {
  readonly script: Script;
  /** Where conversations are stored; in memory without it. */
  readonly file?: string;
  /** Called before each final answer, which comes once the promise resolves. Only kit heeds it. */
  readonly delay?: () => Promise<void>;
}

/** An agent with one tool that returns its input, and a model without latency. */
export interface OpenSubject {
  /** Prompts the conversation of that name and waits for the answer. */
  prompt(session: string): Promise<unknown>;
  /** Prompts, and reads the answer's deltas by asynchronous iteration. */
  stream?(session: string, onDelta: () => void): Promise<unknown>;
  /** Prompts, and receives the answer's deltas in a listener. */
  listen?(session: string, onDelta: () => void): Promise<unknown>;
  /** Reads a stored conversation without calling the model; returns the number of its messages. */
  reopen?(session: string): Promise<number>;
  close(): Promise<void>;
}

/** kit, a peer, or the same work written by hand. */
export interface Subject {
  /** Whether it can store conversations. */
  readonly stores: boolean;
  readonly streams: boolean;
  open(options: OpenOptions): Promise<OpenSubject>;
}
