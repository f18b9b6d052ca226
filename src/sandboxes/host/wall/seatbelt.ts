/** The access of a command on macOS. Paths are absolute and without links. */
export interface SeatbeltPlan {
  readonly root: string;
  readonly write: boolean;
  /** The private folder of the sandbox: its home and temporary files. */
  readonly ownFolder: string;
  /** Visible paths outside the workspace: tools, and the repository of a linked worktree. */
  readonly seen: readonly string[];
  /** The writable ones of these paths. */
  readonly changed: readonly string[];
  /** Paths below the writable ones that are read-only. */
  readonly protectedPaths: readonly string[];
  /** Folders of kit, which commands cannot read. */
  readonly hidden: readonly string[];
  /** The port of the proxy, for a command that may reach hosts. */
  readonly proxyPort?: number | undefined;
}

const systemFolders = [
  ...["/usr", "/bin", "/sbin", "/System", "/Library/Developer", "/Library/Apple", "/Library/Frameworks"],
  ...[
    "/Library/Java",
    "/Applications/Xcode.app",
    "/opt/homebrew",
    "/private/etc/ssl",
    "/private/var/db/timezone",
  ],
  ...[
    "/private/var/db/dyld",
    "/private/var/select",
    "/private/var/db/xcode_select_link",
    "/nix/store",
    "/dev",
  ],
];
const systemFiles = [
  "/",
  "/private",
  "/private/etc",
  "/private/var",
  "/private/etc/localtime",
  "/private/etc/hosts",
  "/private/etc/passwd",
  "/private/etc/group",
  "/private/etc/protocols",
  "/private/etc/services",
];
const devices = [
  "/dev/null",
  "/dev/zero",
  "/dev/random",
  "/dev/urandom",
  "/dev/tty",
  "/dev/dtracehelper",
  "/dev/stdout",
  "/dev/stderr",
];

/**
 * The profile of `sandbox-exec` for a plan. Later rules win, so denials follow grants. Paths are quoted, so that
 * no part of them is read as a rule.
 */
export function toSeatbeltProfile(plan: SeatbeltPlan): string {
  const readable = [...systemFolders, plan.root, plan.ownFolder, ...plan.seen];
  const writable = [plan.ownFolder, ...plan.changed, ...(plan.write ? [plan.root] : [])];
  const lines = [
    "(version 1)",
    "(deny default)",
    "(allow process-fork process-exec)",
    "(allow process-info* (target same-sandbox))",
    "(allow signal (target same-sandbox))",
    "(allow sysctl-read)",
    "(allow ipc-posix-shm* ipc-posix-sem*)",
    '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.notification_center") (global-name "com.apple.system.logger") (global-name "com.apple.trustd.agent") (global-name "com.apple.SecurityServer"))',
    "(allow file-read-metadata)",
    rule("allow file-read*", [...readable.map(subpath), ...systemFiles.map(literal)]),
    rule("allow file-write* file-ioctl", devices.map(literal)),
    rule("allow file-write*", writable.map(subpath)),
    ...(plan.write ? plan.protectedPaths : []).flatMap((path) => [
      rule("deny file-write*", [subpath(path)]),
      // Renaming a folder on the way would move the read-only path out of its rule.
      rule("deny file-write-unlink", ancestors(path, plan.root).map(literal)),
    ]),
    ...plan.hidden.map((path) => rule("deny file-read* file-write*", [subpath(path)])),
    "(deny file-write-setugid)",
    "(deny network*)",
    // The proxy is the only way out.
    ...(plan.proxyPort === undefined
      ? []
      : [`(allow network-outbound (remote ip "localhost:${plan.proxyPort}"))`]),
  ];
  return `${lines.filter((line) => line !== "").join("\n")}\n`;
}

const rule = (head: string, filters: readonly string[]): string =>
  filters.length === 0 ? "" : `(${head} ${filters.join(" ")})`;
const subpath = (path: string): string => `(subpath ${quote(path)})`;
const literal = (path: string): string => `(literal ${quote(path)})`;
const quote = (text: string): string => `"${text.replace(/["\\]/g, "\\$&")}"`;

/** The folders between the root and a path, without the root. */
function ancestors(path: string, root: string): readonly string[] {
  const folders: string[] = [];
  for (let end = path.lastIndexOf("/"); end > root.length; end = path.lastIndexOf("/", end - 1)) {
    folders.push(path.slice(0, end));
  }
  return folders;
}
