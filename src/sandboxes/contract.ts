/** Abilities beyond reading and writing files; check these, never the sandbox's name. */
export interface SandboxCapabilities {
  /** `exec` is supported. */
  readonly exec: boolean;
  /** `exec` accepts an argument list and runs it without a shell. */
  readonly literalExec: boolean;
  /** Files survive `close`: opening the sandbox again finds them. */
  readonly persistent: boolean;
}

export interface FileStat {
  /** `list` also reports `link` and `other` (devices, pipes, sockets); `stat` follows links. */
  readonly kind: "file" | "directory" | "link" | "other";
  /** Bytes; for a folder, the operating system's figure. */
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
   * The program that isolates commands. `remote`: commands run on the vendor's machine, which enforces `CommandAccess`
   * itself. `none`: no isolation; a command can do everything that the user of this process can.
   */
  readonly wall: "bubblewrap" | "seatbelt" | "remote" | "none";
  /** One line for people and models: what isolated commands cannot do, or why commands are not isolated. */
  readonly description: string;
  /** How to enable isolation, if there is none. */
  readonly hint?: string;
}

/** The access of one command. Isolation enforces it for any program; without isolation it is not enforced. */
export interface CommandAccess {
  /** Whether the command may change files of the workspace; default true. */
  readonly write?: boolean | undefined;
  /**
   * The hosts that may be reached: `"api.github.com"`, `"*.example.com"`, with a port
   * `"registry.npmjs.org:443"`. Default: none.
   */
  readonly network?: readonly string[] | undefined;
  /** Paths relative to the workspace root that stay read-only although `write` is set. Missing paths are ignored. */
  readonly readOnlyPaths?: readonly string[] | undefined;
  /**
   * Tells which paths of the workspace the command must not change, and which it must not read either. In a workspace that people
   * share, isolation renames new paths of this kind after the command. Keep the function: what it says of a path is remembered.
   */
  readonly guard?: PathGuard | undefined;
  /** Whether the command may make repositories and guarded paths, as `git clone` does. Default: no. */
  readonly makesRepository?: boolean | undefined;
}

/**
 * The rule for a path relative to the workspace root: a command cannot change a `read-only` path, nor read a `hidden` one. A `holder`
 * is a folder that may contain such paths by its name, so a link must not take its place.
 */
export interface PathGuard {
  (path: string): "read-only" | "hidden" | "holder" | undefined;
  /** Paths that the guard leaves to the command, with everything below them. */
  readonly granted?: readonly string[];
}

export interface ExecRequest {
  /** A program and its literal arguments (run without a shell), or a line for the sandbox's shell. */
  readonly command: readonly string[] | string;
  /** Relative to the sandbox's working folder, which is the default. */
  readonly cwd?: string | undefined;
  /** Added to the sandbox's environment for this call only; pass secrets here. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Default: empty input, so the command reads an end of file. */
  readonly stdin?: string | undefined;
  /** Milliseconds; default 120,000. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Bytes kept of stdout, and as many of stderr; the rest is dropped and counted. Default 1 MiB. */
  readonly maxOutputBytes?: number | undefined;
  /** Called with output while the command runs, until the first bytes are dropped. */
  readonly onOutput?: (chunk: { readonly stream: "stdout" | "stderr"; readonly text: string }) => void;
  /** Default: the command may write in the workspace and reach no host. */
  readonly access?: CommandAccess | undefined;
}

export interface ExecResult {
  /**
   * `null` if a time limit, an abort or too much output ended the command. Otherwise the code that a shell
   * reports: 128 plus the signal number if a signal ended the program, 127 if the program was not found,
   * 126 if it could not be executed.
   */
  readonly exit_code: number | null;
  /** If bytes were dropped: the beginning and the end, with a line between them that says so. */
  readonly stdout: string;
  readonly stderr: string;
  /** Bytes dropped from stdout and stderr together. */
  readonly dropped_bytes: number;
  readonly timed_out: boolean;
  readonly duration_ms: number;
}

export interface GrepRequest {
  /** A regular expression in RE2 syntax, matched line by line in linear time. */
  readonly pattern: string;
  /** A file, or a folder whose files are searched; default: the working folder. */
  readonly path?: string | undefined;
  /**
   * Search only files whose path below the searched folder matches. A glob without a slash is matched against
   * the file name: `*.ts` matches in any folder.
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
  /** Counted from 1. */
  readonly line: number;
  /** The line; for a very long line, the part around the match. */
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
 * - Paths are POSIX, relative to the working folder; `..` is resolved before links are followed. An absolute
 *   path is accepted if it lies in the workspace. No link, race or spelling reads or writes anything outside;
 *   such a path throws `KitError` `forbidden`. Links that stay in the workspace are followed.
 * - A missing file is `not_found`; wrong kinds (a folder read as a file) are `invalid_request`.
 *   Messages name paths of the workspace only.
 * - Writes are atomic and create missing folders. A replaced file keeps its mode; other hard links to it keep
 *   the old content. Special files are refused without blocking. The root itself cannot be removed.
 * - Searches skip files that Git ignores, `.git`, `.kit` and `node_modules`, unless `path` names such a
 *   folder itself; they follow no links, and skip binary and very large files. Their results are
 *   bounded; `truncated` is true if there are more.
 * - At its time limit or abort, `exec` kills the command and every process that it started, and resolves.
 *   Background processes end with their command. `exec` rejects with `signal.reason` only if the signal
 *   fired before the start. A command never finds a program of the workspace by name alone.
 */
export interface Sandbox {
  /** For people and events: "virtual", "local", "e2b". */
  readonly name: string;
  readonly capabilities: SandboxCapabilities;
  /** The working folder, relative to the workspace root; "" for the root. */
  readonly cwd: string;
  /**
   * The absolute folder of the workspace on this machine, with links resolved. Set only if other programs and
   * sessions work in that folder too, so that its paths mean the same files to all of them.
   */
  readonly hostRoot?: string | undefined;
  /** Reports the isolation that enforces `access`; a sandbox without this method has no isolation. */
  readonly isolation?: () => Promise<SandboxIsolation>;
  /**
   * Resolves a path, with links followed, to a path relative to the workspace root; "" is the root. For a
   * missing file, returns the path that a write would create. With `keepLink`, a link in the last place is
   * not followed: the result is what `rm` would remove.
   */
  resolve(path: string, options?: { readonly keepLink?: boolean }): Promise<string>;
  stat(path: string): Promise<FileStat>;
  exists(path: string): Promise<boolean>;
  list(path?: string): Promise<readonly DirectoryEntry[]>;
  /** The whole text; bytes that are not UTF-8 become U+FFFD. Throws `payload_too_large` over 16 MiB. */
  readFile(path: string): Promise<string>;
  /** Throws `payload_too_large` over 16 MiB. */
  readBytes(path: string): Promise<Uint8Array>;
  writeFile(path: string, content: string): Promise<void>;
  writeBytes(path: string, content: Uint8Array): Promise<void>;
  /** Creates a folder and its missing parents; does nothing if it exists. */
  mkdir(path: string): Promise<void>;
  /** Removes a file, a link, or with `recursive` a folder. Links are removed, never their targets. */
  rm(path: string, options?: { readonly recursive?: boolean }): Promise<void>;
  /** Replaces `old` by `new`. Throws `conflict` if the file lacks `old`, or has it several times and `all` is not set. */
  edit(
    path: string,
    change: { readonly old: string; readonly new: string; readonly all?: boolean },
  ): Promise<{ readonly replacements: number }>;
  grep(
    request: GrepRequest,
  ): Promise<{ readonly matches: readonly GrepMatch[]; readonly truncated: boolean }>;
  /** Lists files whose path matches: `*` stays in one folder, `**` spans folders, `{a,b}` is an alternative. */
  glob(
    pattern: string,
    options?: GlobOptions,
  ): Promise<{ readonly paths: readonly string[]; readonly truncated: boolean }>;
  exec(request: ExecRequest): Promise<ExecResult>;
  /** Copies bytes into the sandbox. `upload` and `download` are for callers, never for models. */
  upload(path: string, content: Uint8Array): Promise<void>;
  download(path: string): Promise<Uint8Array>;
  /** Returns the same workspace with another working folder; `cwd` is relative to the current one. */
  at(cwd: string): Sandbox;
  /** Ends running commands. Closing one view of a workspace closes all its views. */
  close(): Promise<void>;
}

/**
 * How commands are isolated. `required` refuses to run a command without isolation; `auto` (default) isolates commands
 * if the machine can, and otherwise runs only known forms of commands; `off` never isolates.
 */
export type IsolationMode = "required" | "auto" | "off";

export interface IsolationOptions {
  readonly isolation?: IsolationMode;
  /** Limits of one command, including all processes that it starts. */
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
  /** The root of the agent's project on this machine, if it has one; the default workspace of `local`. */
  readonly project_root?: string | undefined;
  /** Folders with the agent's skills, relative to the project root; copied into workspaces outside the project. */
  readonly skill_folders?: readonly string[] | undefined;
  /** Hosts that the agent's commands may reach; a vendor's machine can reach no others. */
  readonly network?: readonly string[] | undefined;
  /** Isolation settings of the project's configuration; an option of the sandbox takes precedence. */
  readonly isolation?: IsolationOptions | undefined;
}

/** The location of a workspace on this machine. */
export interface WorkspaceLocation {
  /** Absolute; links are resolved if `shared`. A session's own folder may not exist yet. */
  readonly folder: string;
  /** Whether others work in this folder too, as in a `hostRoot`; otherwise it belongs to the session alone. */
  readonly shared: boolean;
  /** The parent folder of all such workspaces: if it is missing, no such workspace exists. */
  readonly above?: string;
}

/** A vendor's machine that belongs to a session of this project. */
export interface SandboxMachine {
  /** The vendor's id. */
  readonly id: string;
  readonly sandbox: string;
  readonly state: "running" | "paused";
  readonly agent: string;
  readonly instance_id: string;
  readonly session: string;
  /** ISO 8601, if the vendor reports it. */
  readonly created_at?: string | undefined;
  /** Whether kit's records assign it to the session; otherwise a crash or another computer left it. */
  readonly in_use: boolean;
}

/** The changes that a session made to the files its machine started with. */
export interface SandboxChanges {
  /** Input for `git apply` at the project root; empty if nothing changed. */
  readonly patch: string;
  readonly files: readonly { readonly path: string; readonly change: "added" | "modified" | "deleted" }[];
}

/** The machines of one project at one vendor. */
export interface SandboxMachines {
  list(): Promise<readonly SandboxMachine[]>;
  /** Removes a machine with its files. Throws `not_found` if it does not belong to this project. */
  destroy(id: string): Promise<void>;
  /** Throws `not_found` if the session has no machine. */
  changes(owner: SandboxOwner): Promise<SandboxChanges>;
  /**
   * Applies the changes to the project, all or none. Throws `conflict` if the project changed in the same
   * places: call `changes` and show them first.
   */
  apply(changes: Pick<SandboxChanges, "patch">): Promise<void>;
}

/** Opens the sandbox of a session. */
export interface SandboxFactory {
  readonly name: string;
  /** Reports the isolation of its sandboxes without opening one. */
  readonly isolation?: (owner: Pick<SandboxOwner, "isolation">) => Promise<SandboxIsolation>;
  open(context: SandboxOwner & { readonly signal?: AbortSignal }): Promise<Sandbox>;
  /**
   * Returns the location of a session's workspace, so that its files can be read without opening it; creates
   * nothing. Absent, or returns `undefined`, if only an open sandbox can read its workspace.
   */
  locate?(owner: SandboxOwner): WorkspaceLocation | undefined;
  /** Removes the session's workspace. Absent if sessions have no workspace of their own. */
  remove?(owner: SandboxOwner): Promise<void>;
  /** For a vendor's machines: those of the project with this root. */
  machines?(root: string): Promise<SandboxMachines>;
}
