// What decides how kit, Git and agents behave is not for a model to change unless somebody says so.
const protectedPatterns: readonly RegExp[] = [
  /^\.kit(\/|$)/,
  /^kit\.(config\.[cm]?[jt]s|toml)$/,
  /^(src\/)?agents(\/|$)/,
  /^(src\/)?workflows(\/|$)/,
  /^\.agents(\/|$)/,
  /(^|\/)\.git(\/|$)/,
  /(^|\/)\.env(\.[^/]*)?$/,
  /(^|\/)(CLAUDE|AGENTS)(\.local|\.override)?\.md$/,
  /(^|\/)\.(claude|cursor|kiro\/steering|vscode|husky)(\/|$)/,
  /(^|\/)\.(cursorrules|mcp\.json|npmrc|gitconfig|gitmodules)$/,
];

/**
 * Whether a workspace path is protected from a model's writes. `path` is taken relative to `cwd`;
 * letter case does not matter, because it does not on some disks. A folder above a protected path is
 * protected too: removing it would remove what is in it.
 */
export function isProtectedPath(cwd: string, path: string, granted: readonly string[]): boolean {
  const full = normalized(`${cwd}/${path}`);
  if (granted.some((grant) => full === normalized(grant) || full.startsWith(`${normalized(grant)}/`)))
    return false;
  const folded = full.toLowerCase();
  if (folded === "") return true;
  return (
    protectedPatterns.some((pattern) => new RegExp(pattern.source, "i").test(folded)) ||
    folded === "src" ||
    folded === ".kiro"
  );
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
