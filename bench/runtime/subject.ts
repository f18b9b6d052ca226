/** The answer that a model without latency gives to every prompt. */
export type Script = "answer" | "tools" | "deltas";

/** Tool calls that the `tools` script asks for before it answers: a loop of five turns. */
export const toolCallsPerLoop = 4;

/** Deltas of one answer of the `deltas` script. */
export const deltasPerAnswer = 10_000;

export interface OpenOptions {
  readonly script: Script;
  /** Where conversations are stored; in memory without it. */
  readonly file?: string;
}

/** An agent with one tool that says again what it was told, around a model without latency. */
export interface OpenSubject {
  /** Prompts the conversation of that name and waits for the answer. */
  prompt(session: string): Promise<unknown>;
  /** Prompts, and reads the answer's deltas in an asynchronous iteration. */
  stream?(session: string, onDelta: () => void): Promise<unknown>;
  /** Prompts, and hears the answer's deltas by a listener. */
  listen?(session: string, onDelta: () => void): Promise<unknown>;
  /** Reads a stored conversation back, without asking the model; gives the number of its messages. */
  reopen?(session: string): Promise<number>;
  close(): Promise<void>;
}

/** kit, a peer, or the same work written by hand. */
export interface Subject {
  /** Whether it stores conversations in a store of its own. */
  readonly stores: boolean;
  readonly streams: boolean;
  open(options: OpenOptions): Promise<OpenSubject>;
}
