/** The abilities of a sandbox beyond files; check these, never its name. */
export interface SandboxCapabilities {
  /** Commands run at all. */
  readonly exec: boolean;
  /** `exec` takes an argument list and runs it without a shell. */
  readonly literalExec: boolean;
  /** Files live on after `close`, and are there when the sandbox is opened again. */
  readonly persistent: boolean;
}

export interface FileStat {
  /** `link` and `other` (devices, pipes, sockets) are told by `list`; `stat` follows links. */
  readonly kind: "file" | "directory" | "link" | "other";
  /** Bytes; of a folder, whatever the system says. */
  readonly size: number;
  /** ISO 8601. */
  readonly modified_at: string;
}

export interface DirectoryEntry {
  readonly name: string;
  readonly kind: FileStat["kind"];
}

/** The isolation between a command and the machine that it runs on. */
export interface SandboxIsolation {
  /**
   * `remote`: commands run on a machine of the sandbox's own, which keeps `CommandAccess` itself.
   * `none`: a command can do whatever the user of this process may.
   */
  readonly wall: "bubblewrap" | "seatbelt" | "remote" | "none";
  /** One line for people and models: what the wall keeps out, or why there is none. */
  readonly description: string;
  /** Where there is none: what would let one stand. */
  readonly hint?: string;
}

/** The access of one command. A wall enforces it for any program; without a wall it is not enforced. */
export interface CommandAccess {
  /** Whether files of the workspace may be changed; default true, for a program's own calls. */
  readonly write?: boolean | undefined;
  /**
   * The hosts that may be reached: `"api.github.com"`, `"*.example.com"`, with a port
   * `"registry.npmjs.org:443"`. Default: none.
   */
  readonly network?: readonly string[] | undefined;
  /** Paths of the workspace, from its root, that stay as they are although `write` is set. Missing ones are passed over. */
  readonly readOnlyPaths?: readonly string[] | undefined;
}

export interface ExecRequest {
  /** A program and its literal arguments (run without a shell), or a line for the sandbox's shell. */
  readonly command: readonly string[] | string;
  /** Relative to the sandbox's working folder, which is the default. */
  readonly cwd?: string | undefined;
  /** Added to the sandbox's environment for this call only: secrets come this way. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Without it, the command reads an end of file. */
  readonly stdin?: string | undefined;
  /** Milliseconds; default 120,000. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Bytes of stdout and of stderr that are kept each; the rest is dropped and counted. Default 1 MiB. */
  readonly maxOutputBytes?: number | undefined;
  /** Hears the output while the command runs, as long as all of it is kept. */
  readonly onOutput?: (chunk: { readonly stream: "stdout" | "stderr"; readonly text: string }) => void;
  /** The access of the command; by default it may write in the workspace, and reach no host. */
  readonly access?: CommandAccess | undefined;
}

export interface ExecResult {
  /**
   * Null when a time limit, an abort or too much output ended the command. Otherwise as shells give it: 128
   * and a signal's number for a program that the signal ended, and for one that cannot be started 127 when
   * it is not there, 126 when it may not run.
   */
  readonly exit_code: number | null;
  /** Where bytes were dropped, the beginning and the end, with a line between them that says so. */
  readonly stdout: string;
  readonly stderr: string;
  /** Bytes of both that did not fit. */
  readonly dropped_bytes: number;
  readonly timed_out: boolean;
  readonly duration_ms: number;
}

export interface GrepRequest {
  /** A regular expression that is matched in linear time (RE2 syntax), line by line. */
  readonly pattern: string;
  /** A file, or a folder whose files are searched; default: the working folder. */
  readonly path?: string | undefined;
  /**
   * Only files whose path below the searched folder matches; without a slash, whose name matches:
   * `*.ts` is in any folder.
   */
  readonly glob?: string | undefined;
  readonly ignoreCase?: boolean | undefined;
  /** Default 1,000. */
  readonly maxMatches?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface GrepMatch {
  /** Relative to the working folder. */
  readonly path: string;
  /** From 1. */
  readonly line: number;
  /** The line; of a very long one, what is around the match. */
  readonly text: string;
}

export interface GlobOptions {
  /** The folder that the pattern is relative to; default: the working folder. */
  readonly path?: string | undefined;
  /** Default 1,000. */
  readonly maxResults?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * A workspace and the commands that run in it.
 *
 * - Paths are POSIX, relative to the working folder; `..` goes back as it is written. An absolute path
 *   is taken when it lies in the workspace, and refused otherwise. Nothing outside is ever read or
 *   written, through no link, race or spelling; such a path is `KitError` `forbidden`. Links that stay
 *   in the workspace are followed.
 * - A missing file is `not_found`; wrong kinds (a folder read as a file) are `invalid_request`.
 *   Messages name paths of the workspace only.
 * - Writes are atomic and create missing folders. A file that is replaced keeps its mode; another name
 *   of it (a hard link) keeps the old content. Special files are refused without blocking. The root
 *   itself cannot be removed.
 * - Searches leave out what Git ignores, `.git`, `.kit` and `node_modules`, unless `path` names such a
 *   folder itself; they follow no links, and skip binary and very large files. Their results are
 *   bounded; `truncated` says that there is more.
 * - `exec` kills the command with all that it started at its time limit or abort, and resolves; what
 *   it left running in the background ends with it. It rejects with `signal.reason` only when the
 *   signal had fired before the start. No command finds a program in the workspace by its name alone.
 */
export interface Sandbox {
  /** For people and events: "virtual", "local", "e2b". */
  readonly name: string;
  readonly capabilities: SandboxCapabilities;
  /** The working folder, relative to the workspace root; "" for the root. */
  readonly cwd: string;
  /**
   * Where the workspace lies on this machine, absolute and without links, when it is a folder that others
   * work in, too: a path in it then means the same file to everybody.
   */
  readonly hostRoot?: string | undefined;
  /** The isolation that keeps commands to their `access`; a sandbox without it has no wall. */
  readonly isolation?: () => Promise<SandboxIsolation>;
  /**
   * Where a path leads, relative to the workspace root, with links followed; "" for the root. What does
   * not exist is named as a write would create it. `keepLink` names a link at the end itself: what `rm`
   * would remove.
   */
  resolve(path: string, options?: { readonly keepLink?: boolean }): Promise<string>;
  stat(path: string): Promise<FileStat>;
  exists(path: string): Promise<boolean>;
  list(path?: string): Promise<readonly DirectoryEntry[]>;
  /** The text as it is; what is not UTF-8 becomes U+FFFD. `payload_too_large` past 16 MiB. */
  readFile(path: string): Promise<string>;
  /** `payload_too_large` past 16 MiB. */
  readBytes(path: string): Promise<Uint8Array>;
  writeFile(path: string, content: string): Promise<void>;
  writeBytes(path: string, content: Uint8Array): Promise<void>;
  /** Creates a folder with those above it; one that is there is fine. */
  mkdir(path: string): Promise<void>;
  /** Removes a file or link; a folder only when `recursive` is set, with its links, never what they lead to. */
  rm(path: string, options?: { readonly recursive?: boolean }): Promise<void>;
  /** Replaces `old` by `new`; `conflict` when `old` is not there exactly once, unless `all`. */
  edit(
    path: string,
    change: { readonly old: string; readonly new: string; readonly all?: boolean },
  ): Promise<{ readonly replacements: number }>;
  grep(
    request: GrepRequest,
  ): Promise<{ readonly matches: readonly GrepMatch[]; readonly truncated: boolean }>;
  /** Files whose path matches: `*` stays in one folder, `**` spans any number, `{a,b}` is either. */
  glob(
    pattern: string,
    options?: GlobOptions,
  ): Promise<{ readonly paths: readonly string[]; readonly truncated: boolean }>;
  exec(request: ExecRequest): Promise<ExecResult>;
  /** Copies bytes in or out of the sandbox: for callers, never for models. */
  upload(path: string, content: Uint8Array): Promise<void>;
  download(path: string): Promise<Uint8Array>;
  /** The same workspace with another working folder, which is relative to the present one. */
  at(cwd: string): Sandbox;
  /** Ends commands that still run. Closing any view of a workspace closes all of them. */
  close(): Promise<void>;
}

/**
 * How commands are walled in. `required` runs no command without a wall; `auto` (default) takes the wall that
 * this machine has, and otherwise runs known forms of commands only; `off` has none.
 */
export type IsolationMode = "required" | "auto" | "off";

export interface IsolationOptions {
  readonly isolation?: IsolationMode;
  /** Limits of one command, with all the processes that it starts. */
  readonly limits?: CommandLimits;
}

export interface CommandLimits {
  /** Processes and threads at a time; default 1,024. */
  readonly processes?: number;
  /** Memory in MiB; default 4,096. */
  readonly memoryMb?: number;
}

/** The owner of a sandbox: agent, instance and session name the workspace. */
export interface SandboxOwner {
  readonly agent: string;
  readonly instance_id: string;
  readonly session: string;
  /** The root of the agent's project on this machine, where it has one: the place to work in by default. */
  readonly project_root?: string | undefined;
  /** Folders of the project with the agent's skills, from its root: a workspace that is none of the project's holds them, too. */
  readonly skill_folders?: readonly string[] | undefined;
  /** Hosts that the agent's commands may reach: a machine of a vendor is closed to all others. */
  readonly network?: readonly string[] | undefined;
  /** Isolation settings of the project's configuration; an option of the sandbox takes precedence. */
  readonly isolation?: IsolationOptions | undefined;
}

/** Where a workspace lies on this machine. */
export interface WorkspaceLocation {
  /** Absolute; of a shared one, with links resolved. One of a session's own need not be there yet. */
  readonly folder: string;
  /** Whether others work in this folder, too, as in a `hostRoot`; else it is the session's alone. */
  readonly shared: boolean;
  /** The folder that all such workspaces lie in: where it is not there, neither is any of them. */
  readonly above?: string;
}

/** A machine of a vendor that belongs to a session of this project. */
export interface SandboxMachine {
  /** The vendor's. */
  readonly id: string;
  readonly sandbox: string;
  readonly state: "running" | "paused";
  readonly agent: string;
  readonly instance_id: string;
  readonly session: string;
  /** ISO 8601, where the vendor tells it. */
  readonly created_at?: string | undefined;
  /** Whether kit has noted that the session uses it: one that it has not was left by a crash, or by another computer. */
  readonly in_use: boolean;
}

/** The changes of a session to the files that its machine started with. */
export interface SandboxChanges {
  /** For `git apply` at the root of the project; empty when nothing has changed. */
  readonly patch: string;
  readonly files: readonly { readonly path: string; readonly change: "added" | "modified" | "deleted" }[];
}

/** The machines of one project at one vendor: never those of another. */
export interface SandboxMachines {
  list(): Promise<readonly SandboxMachine[]>;
  /** Removes a machine with its files. Throws `not_found` for one that is not of this project. */
  destroy(id: string): Promise<void>;
  /** Throws `not_found` where the session has no machine. */
  changes(owner: SandboxOwner): Promise<SandboxChanges>;
  /**
   * Applies them to the project, whole or not at all. Throws `conflict` where it has changed in the same places:
   * ask for the changes and show them first.
   */
  apply(changes: Pick<SandboxChanges, "patch">): Promise<void>;
}

/** Opens the sandbox of a session. */
export interface SandboxFactory {
  readonly name: string;
  /** The isolation of its sandboxes, found without opening one. */
  readonly isolation?: (owner: Pick<SandboxOwner, "isolation">) => Promise<SandboxIsolation>;
  open(context: SandboxOwner & { readonly signal?: AbortSignal }): Promise<Sandbox>;
  /**
   * Where the workspace of a session lies, or will lie once it is opened: what stands there is read without
   * opening it. Makes nothing. Absent, or undefined, where only an open sandbox can read its workspace.
   */
  locate?(owner: SandboxOwner): WorkspaceLocation | undefined;
  /** Removes what belongs to that session alone: its workspace. Absent where nothing does. */
  remove?(owner: SandboxOwner): Promise<void>;
  /** Where sandboxes are machines of a vendor: those of the project with that root. */
  machines?(root: string): Promise<SandboxMachines>;
}
