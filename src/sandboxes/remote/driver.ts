/** The interface to one vendor: its machines, and running scripts on them. kit implements everything else on top. */
export interface RemoteDriver {
  /** The name of the sandbox in errors and configuration, such as "e2b". */
  readonly name: string;
  /** The absolute path of the workspace on a machine; created if it is missing. */
  readonly folder: string;
  /**
   * The network rules that the vendor enforces: `hosts` allows single hosts, `all-or-none` blocks everything or
   * nothing; `undefined` if machines can reach every host.
   */
  readonly network?: "hosts" | "all-or-none" | undefined;
  /** Creates a machine and waits until it runs. */
  create(spec: MachineSpec): Promise<RemoteMachine>;
  /** Returns a running machine by its id; resumes it if it is paused. Rejects with `gone` if it does not exist. */
  attach(id: string, spec: Pick<MachineSpec, "aliveMs">): Promise<RemoteMachine>;
  /** Stops the machine and keeps its files. Absent if the vendor cannot pause machines. */
  pause?(id: string): Promise<void>;
  /** Removes the machine with its files; does nothing if it does not exist. */
  destroy(id: string): Promise<void>;
  /** Lists the running and paused machines that have all these labels. */
  list(labels: Readonly<Record<string, string>>): Promise<readonly MachineInfo[]>;
}

export interface MachineSpec {
  readonly labels: Readonly<Record<string, string>>;
  /** Environment variables of every command. */
  readonly env: Readonly<Record<string, string>>;
  /** Hosts that the machine may reach; empty: none; `undefined`: the vendor's default. */
  readonly network?: readonly string[] | undefined;
  /** Milliseconds after the last `keepAlive` at which the vendor pauses the machine. */
  readonly aliveMs: number;
}

export interface MachineInfo {
  readonly id: string;
  readonly state: "running" | "paused";
  readonly labels: Readonly<Record<string, string>>;
  /** ISO 8601. */
  readonly created_at?: string | undefined;
}

/** A running machine. */
export interface RemoteMachine {
  readonly id: string;
  /**
   * Runs `sh -c script kit ...args` and resolves with its exit code after its output has ended. Rejects with a
   * `remoteError`: `lost` if the script may have run, any other reason if it did not run.
   */
  run(request: RemoteRun): Promise<{ readonly exitCode: number }>;
  /** Keeps the machine running for `ms` milliseconds from now. */
  keepAlive(ms: number): Promise<void>;
}

export interface RemoteRun {
  readonly script: string;
  readonly args: readonly string[];
  /** Default: empty input. */
  readonly stdin?: string | undefined;
  /** Variables for this run only. They may be secret, so they must not appear in a command line or a vendor's record. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Whether the script is a command, which can take long: both output streams are passed on as they arrive. For
   * other scripts only standard output is needed, and it can arrive at the end.
   */
  readonly isCommand?: boolean;
  readonly onOutput: (stream: "stdout" | "stderr", text: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/** A file that a driver uploads before it runs a script. */
export interface UploadFile {
  readonly path: string;
  readonly text: string;
}

/**
 * Returns the shell line that runs a script, and the files to upload first: large or secret input, which the script reads and
 * removes. `path` is the unique start of their paths, with a slash.
 */
export function toUploadedRun(
  { script, args, stdin, env = {} }: RemoteRun,
  path: string,
): { readonly line: string; readonly files: readonly UploadFile[] } {
  const variables = Object.entries(env).map(([name, value]) => `export ${name}=${quote(value)}\n`);
  const files = [
    ...(variables.length === 0 ? [] : [{ path: `${path}.env`, text: variables.join("") }]),
    ...(stdin === undefined ? [] : [{ path: `${path}.in`, text: stdin }]),
  ];
  const start = [
    ...(variables.length === 0 ? [] : [`. ${path}.env; rm -f ${path}.env`]),
    stdin === undefined ? "exec </dev/null" : `exec <${path}.in; rm -f ${path}.in`,
  ];
  return { line: shellLine(`${start.join("\n")}\n${script}`, args), files };
}

/** Formats a script with its arguments as one shell line. */
export function shellLine(script: string, args: readonly string[]): string {
  return `exec sh -c ${quote(script)} kit ${args.map(quote).join(" ")}`;
}

/** Quotes a word for a shell. */
const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/** Whether a machine has all these labels. Vendors filter by labels too, but kit removes machines by this result. */
export function hasLabels(
  { labels }: Pick<MachineInfo, "labels">,
  expected: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(expected).every(([name, value]) => labels[name] === value);
}
