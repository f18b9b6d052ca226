// What decides how kit, its agents and Git behave is not for a model to change, unless it was granted.
const protectedPaths: readonly RegExp[] = [
  /^\.kit(\/|$)/,
  /^kit\.(config\.[cm]?[jt]s|toml)$/,
  /^(src\/)?(agents|workflows)(\/|$)/,
  /^\.agents(\/|$)/,
  /(^|\/)\.git(\/|$)/,
];

/** Folders that hold protected ones: they may be written into, but not removed. */
const holders = new Set(["", "src"]);

/**
 * Whether a workspace path is protected from a model's change. `path` is taken relative to `cwd`;
 * letter case does not matter, because it does not on some disks.
 */
export function isProtectedPath(
  target: { readonly cwd: string; readonly path: string; readonly removes?: boolean },
  granted: readonly string[],
): boolean {
  const full = normalized(`${target.cwd}/${target.path}`);
  if (granted.some((grant) => full === normalized(grant) || full.startsWith(`${normalized(grant)}/`)))
    return false;
  const folded = full.toLowerCase();
  if (target.removes === true && holders.has(folded)) return true;
  return protectedPaths.some((pattern) => pattern.test(folded));
}

function normalized(path: string): string {
  const segments: string[] = [];
  for (const segment of path.split(/[/\\]/)) {
    if (segment === "" || segment === ".") continue;
    if (segment === "..") segments.pop();
    else segments.push(segment);
  }
  return segments.join("/");
}
