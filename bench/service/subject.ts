export interface ServeOptions {
  /** The folder for its data. */
  readonly folder: string;
  /** Whether its model never answers the prompt that asks it to hold; otherwise that prompt is like others. */
  readonly holds: boolean;
  /** Called with the time of the model's first call, by `process.hrtime`. */
  readonly onFirstCall: (at: bigint) => void;
}

/** Starts a server on a free port of 127.0.0.1 and returns the port. */
export type Serve = (options: ServeOptions) => Promise<number>;

/** A prompt that the model answers with deltas that contain the times of their creation. */
export const askForDeltas = "deltas";
/** A prompt that the model never answers. */
export const askToHold = "hold";

export const deltasPerAnswer = 100;
export const deltaEveryMs = 4;
