export interface BenchInput {
  readonly id: string;
  readonly session: string;
  /** How long the work takes; without it nothing is done. */
  readonly ms?: number;
}

export interface WorkerSettings {
  readonly kind: "embedded" | "postgres" | "restate" | "dbos";
  readonly url: string;
  readonly schema: string;
  /** Facts of the embedded engine. */
  readonly folder?: string;
  /** Where Restate reaches the worker. */
  readonly port?: number;
}

export interface WorkerReport {
  readonly done: number;
  /** Inputs with a length that have begun since the last report. */
  readonly begun: readonly { readonly id: string; readonly at: number }[];
}

/** The answer that a benchmark waits for must fit. */
export const limits = { waiting: 1_000_000, waitingPerSession: 100_000, running: 256 } as const;

/** An engine with its workers, as the benchmark drives it. */
export interface Subject {
  /** Resolves once the input is accepted for good. */
  admit(input: BenchInput): Promise<unknown>;
  /** How many inputs were done for good. */
  done(): Promise<number>;
  /** Processes that belong to it, by what they do. */
  readonly processes: Readonly<Record<string, () => readonly number[]>>;
  readonly workers: readonly Worker[];
  stop(): Promise<void>;
}

export interface Worker {
  readonly pid: number;
  readonly report: { done: number; begun: { id: string; at: number }[] };
  kill(signal: "SIGKILL" | "SIGSTOP" | "SIGCONT"): void;
}
