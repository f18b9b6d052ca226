// What decides how kit, its agents and Git behave is not for a model to change, unless it was granted.
const protectedAnywhere = /(^|\/)(\.git|\.kit|\.agents)(\/|$)|(^|\/)kit\.(config\.[cm]?[jt]s|toml)$/;

/** The folders of agents, workflows and webhooks, from the root of the workspace or of the project. */
const sources = /^((src\/)?(agents|workflows)|src\/webhooks)(\/|$)/;

/** Folders that hold protected ones: they may be written into, but not removed. */
const holders = new Set(["", "src"]);

/** What a tool is about to change. */
export interface PathChange {
  /** Relative to `cwd`, which is relative to the root of the workspace. */
  readonly path: string;
  readonly cwd: string;
  readonly removes?: boolean;
  /** Where the workspace and the agent's project lie on this machine: one may be a part of the other. */
  readonly hostRoot?: string | undefined;
  readonly projectRoot?: string | undefined;
}

/**
 * Whether a path is protected from a model's change. Letter case does not matter, nor do forms of one letter
 * and signs that nobody sees, because they do not on some disks. `granted` are paths from the root of the workspace.
 */
export function isProtectedPath(change: PathChange, granted: readonly string[]): boolean {
  const segments = segmentsOf(`${change.cwd}/${change.path}`);
  const full = segments.join("/");
  const isGranted = (grant: string): boolean => full === grant || full.startsWith(`${grant}/`);
  if (granted.some((grant) => isGranted(segmentsOf(grant).join("/")))) return false;
  const inWorkspace = folded(full);
  if (protectedAnywhere.test(inWorkspace)) return true;
  return [inWorkspace, pathInProject(segments, change)].some(
    (path) => path !== undefined && (sources.test(path) || (change.removes === true && holders.has(path))),
  );
}

/** The same place from the project's root, "" for what lies above it; undefined where the project is elsewhere. */
function pathInProject(
  segments: readonly string[],
  { hostRoot, projectRoot }: PathChange,
): string | undefined {
  if (hostRoot === undefined || projectRoot === undefined) return undefined;
  const place = folded([...segmentsOf(hostRoot), ...segments].join("/"));
  const project = folded(segmentsOf(projectRoot).join("/"));
  if (place === project || place === "" || project.startsWith(`${place}/`)) return "";
  return place.startsWith(`${project}/`) ? place.slice(project.length + 1) : undefined;
}

function folded(path: string): string {
  return path
    .replace(/\p{Default_Ignorable_Code_Point}/gu, "")
    .normalize("NFKC")
    .toLowerCase();
}

function segmentsOf(path: string): readonly string[] {
  const segments: string[] = [];
  for (const segment of path.split(/[/\\]/)) {
    if (segment === "" || segment === ".") continue;
    if (segment === "..") segments.pop();
    else segments.push(segment);
  }
  return segments;
}
