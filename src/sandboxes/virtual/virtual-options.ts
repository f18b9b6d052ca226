export interface VirtualOptions {
  /** The project; workspaces lie in its `.kit/sandboxes`. Default: the folder the process started in. */
  readonly root?: string;
  /** The folder of all workspaces, in place of `.kit/sandboxes` below `root`. */
  readonly folder?: string;
  /** Files of a new workspace, by path; one that exists is left as it is. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  /** What commands get beside `PATH`, a home of their own and the language. */
  readonly env?: Readonly<Record<string, string>>;
}
