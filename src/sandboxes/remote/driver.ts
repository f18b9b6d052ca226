/** The interface to one vendor: machines, and scripts that run on them. Everything else is kit's own. */
export interface RemoteDriver {
  /** The name of the sandbox, in its errors and its configuration too: "e2b". */
  readonly name: string;
  /** The workspace on a machine, absolute; made when it is missing. */
  readonly folder: string;
  /**
   * Which network rules the vendor keeps: `hosts` lets single hosts through, `all-or-none` closes everything or
   * nothing; undefined where a machine reaches whatever it likes.
   */
  readonly network?: "hosts" | "all-or-none" | undefined;
  /** A new machine that runs. */
  create(spec: MachineSpec): Promise<RemoteMachine>;
  /** The machine of that id, running: one that is paused is resumed. Rejects with `gone` when there is none. */
  attach(id: string, spec: Pick<MachineSpec, "aliveMs">): Promise<RemoteMachine>;
  /** Keeps the files and stops the costs. Absent where the vendor cannot. */
  pause?(id: string): Promise<void>;
  /** Removes the machine with its files. One that is gone is fine. */
  destroy(id: string): Promise<void>;
  /** Every machine, running or paused, that has all of these labels. */
  list(labels: Readonly<Record<string, string>>): Promise<readonly MachineInfo[]>;
}

export interface MachineSpec {
  readonly labels: Readonly<Record<string, string>>;
  /** Variables that every command finds. */
  readonly env: Readonly<Record<string, string>>;
  /** Hosts that the machine may reach; empty: none; undefined: whatever the vendor lets it. */
  readonly network?: readonly string[] | undefined;
  /** How long the machine runs, in milliseconds, when kit does not say again that it is needed; then it pauses itself. */
  readonly aliveMs: number;
}

export interface MachineInfo {
  readonly id: string;
  readonly state: "running" | "paused";
  readonly labels: Readonly<Record<string, string>>;
  /** ISO 8601. */
  readonly created_at?: string | undefined;
}

/** A machine that runs. */
export interface RemoteMachine {
  readonly id: string;
  /**
   * Runs `sh -c script kit ...args` and resolves with its exit code when its output has ended. Rejects with a
   * `remoteError`: `lost` when the script may have run, and any other reason when it has not.
   */
  run(request: RemoteRun): Promise<{ readonly exitCode: number }>;
  /** Has the machine run for that many milliseconds from now. */
  keepAlive(ms: number): Promise<void>;
}

export interface RemoteRun {
  readonly script: string;
  readonly args: readonly string[];
  /** Without it, the script reads an end of file. */
  readonly stdin?: string | undefined;
  /** Variables of this run alone: they may be secret, and are in no command line and no record of the vendor. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Whether it is a command, which may take long: its output is heard as it comes, in both streams. Of any other
   * script only standard output matters, and it may come at the end.
   */
  readonly isCommand?: boolean;
  readonly onOutput: (stream: "stdout" | "stderr", text: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/** A script with its arguments as one line for a shell. */
export function shellLine(script: string, args: readonly string[]): string {
  return `exec sh -c ${quote(script)} kit ${args.map(quote).join(" ")}`;
}

/** A word that a shell takes as it is. */
export const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;
