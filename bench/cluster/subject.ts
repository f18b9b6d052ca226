export interface BenchInput {
  readonly id: string;
  readonly session: string;
  /** The duration of the work; without it the work ends at once. */
  readonly ms?: number;
}

export interface WorkerSettings {
  readonly kind: "embedded" | "postgres" | "restate" | "dbos";
  readonly url: string;
  readonly schema: string;
  /** Settings of the embedded engine. */
  readonly folder?: string;
  /** The URL under which Restate reaches the worker. */
  readonly port?: number;
}

export interface WorkerReport {
  readonly done: number;
  /** Inputs with a duration that have begun since the last report. */
  readonly begun: readonly { readonly id: string; readonly at: number }[];
}

/** The limits for the result of a benchmark. */
export const limits = { waiting: 1_000_000, waitingPerSession: 100_000, running: 256 } as const;

/** An engine with its workers, as the benchmark drives it. */
export interface Subject {
  /** Resolves once the input is durably accepted. */
  admit(input: BenchInput): Promise<unknown>;
  /** The number of durably finished inputs. */
  done(): Promise<number>;
  /** The subject's processes, by role. */
  readonly processes: Readonly<Record<string, () => readonly number[]>>;
  readonly workers: readonly Worker[];
  stop(): Promise<void>;
}

export interface Worker {
  readonly pid: number;
  readonly report: { done: number; begun: { id: string; at: number }[] };
  kill(signal: "SIGKILL" | "SIGSTOP" | "SIGCONT"): void;
}
