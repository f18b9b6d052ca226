/** What a sandbox can do beyond files; ask these, never its name. */
export interface SandboxCapabilities {
  /** Commands run at all. */
  readonly exec: boolean;
  /** `exec` takes an argument list and runs it without a shell. */
  readonly literalExec: boolean;
  /** Files live on after `close`, and are there when the sandbox is opened again. */
  readonly persistent: boolean;
}

export interface FileStat {
  readonly kind: "file" | "directory" | "link" | "other";
  readonly size: number;
  /** ISO 8601. */
  readonly modified_at: string;
}

export interface DirectoryEntry {
  readonly name: string;
  readonly kind: FileStat["kind"];
}

export interface ExecRequest {
  /** A program and its literal arguments (run without a shell), or a line for the sandbox's shell. */
  readonly command: readonly string[] | string;
  /** Relative to the workspace; default: the sandbox's working folder. */
  readonly cwd?: string;
  /** Added to the sandbox's environment for this call only: secrets come this way. */
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Bytes of stdout and of stderr that are kept each; the rest is dropped and counted. */
  readonly maxOutputBytes?: number;
  readonly onOutput?: (chunk: { readonly stream: "stdout" | "stderr"; readonly text: string }) => void;
}

export interface ExecResult {
  /** Null when a signal, a time limit or an abort ended the command. */
  readonly exit_code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Bytes that did not fit. */
  readonly dropped_bytes: number;
  readonly timed_out: boolean;
  readonly duration_ms: number;
}

export interface GrepRequest {
  /** A regular expression that is matched in linear time (RE2 syntax), line by line. */
  readonly pattern: string;
  readonly path?: string;
  /** Only files whose path matches. */
  readonly glob?: string;
  readonly ignoreCase?: boolean;
  readonly maxMatches?: number;
  readonly signal?: AbortSignal;
}

export interface GrepMatch {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/**
 * A workspace and the commands that run in it.
 *
 * - Paths are POSIX, relative to the workspace root or to `cwd`; an absolute path is taken relative to
 *   nothing and refused, unless it lies in the workspace. Nothing outside is ever read or written,
 *   through no link, race or spelling; such a path is `KitError` `forbidden`.
 * - A missing file is `not_found`; wrong kinds (a folder read as a file) are `invalid_request`.
 *   Messages name paths of the workspace only.
 * - Writes are atomic and create missing folders. Special files are refused without blocking. The
 *   root itself cannot be removed.
 * - `exec` kills the whole process group at its time limit or abort, and resolves; it rejects with
 *   `signal.reason` only when the signal had fired before the start.
 */
export interface Sandbox {
  /** For people and events: "virtual", "local", "e2b". */
  readonly name: string;
  readonly capabilities: SandboxCapabilities;
  /** The working folder, relative to the workspace root; "" for the root. */
  readonly cwd: string;
  stat(path: string): Promise<FileStat>;
  exists(path: string): Promise<boolean>;
  list(path?: string): Promise<readonly DirectoryEntry[]>;
  readFile(path: string): Promise<string>;
  readBytes(path: string): Promise<Uint8Array>;
  writeFile(path: string, content: string): Promise<void>;
  writeBytes(path: string, content: Uint8Array): Promise<void>;
  mkdir(path: string): Promise<void>;
  rm(path: string, options?: { readonly recursive?: boolean }): Promise<void>;
  /** Replaces `old` by `new`; `conflict` when `old` is not there exactly once, unless `all`. */
  edit(
    path: string,
    change: { readonly old: string; readonly new: string; readonly all?: boolean },
  ): Promise<{ readonly replacements: number }>;
  grep(
    request: GrepRequest,
  ): Promise<{ readonly matches: readonly GrepMatch[]; readonly truncated: boolean }>;
  glob(
    pattern: string,
    options?: { readonly path?: string; readonly maxResults?: number; readonly signal?: AbortSignal },
  ): Promise<{ readonly paths: readonly string[]; readonly truncated: boolean }>;
  exec(request: ExecRequest): Promise<ExecResult>;
  /** Copies bytes in or out of the sandbox: for callers, never for models. */
  upload(path: string, content: Uint8Array): Promise<void>;
  download(path: string): Promise<Uint8Array>;
  /** The same workspace with another working folder. */
  at(cwd: string): Sandbox;
  close(): Promise<void>;
}

/** Opens the sandbox of a session. */
export interface SandboxFactory {
  readonly name: string;
  open(context: {
    readonly agent: string;
    readonly instance_id: string;
    readonly session: string;
    readonly signal?: AbortSignal;
  }): Promise<Sandbox>;
}
