export interface ServeOptions {
  /** Where it may store what it keeps. */
  readonly folder: string;
  /** Whether its model never answers a prompt that asks it to hold; else it is a prompt like others. */
  readonly holds: boolean;
  /** To be told when the model is called for the first time, by `process.hrtime`. */
  readonly onFirstCall: (at: bigint) => void;
}

/** Starts a server on a free port of 127.0.0.1, and gives the port. */
export type Serve = (options: ServeOptions) => Promise<number>;

/** A prompt that a model answers with deltas which are the times at which they were made. */
export const askForDeltas = "deltas";
/** A prompt that a model never answers. */
export const askToHold = "hold";

export const deltasPerAnswer = 100;
export const deltaEveryMs = 4;
