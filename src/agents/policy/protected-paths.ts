import { isVariablesName } from "../../base/names.ts";
import type { PathGuard } from "../../sandboxes/contract.ts";

// Models must not change files that decide how kit, its agents, Git, CI and the project's tools behave, unless a path is
// granted: some of these files run with the credentials of the next person who opens the repository.

/** Folders that are protected with everything below them, at any depth of a path. */
const folders = [
  ...[
    ".git",
    ".kit",
    ".agents",
    "node_modules",
    ".husky",
    ".githooks",
    ".circleci",
    ".buildkite",
    ".woodpecker",
  ],
  ...[
    ".ci",
    ".teamcity",
    ".vscode",
    ".idea",
    ".devcontainer",
    ".codex",
    ".github/workflows",
    ".github/actions",
    ".forgejo/workflows",
    ".forgejo/actions",
  ],
  ...[
    ".gitea/workflows",
    ".gitea/actions",
    ".fleet",
    ".nova",
    ".helix",
    ".vim",
    ".nvim",
    ".config/mise",
    ".mise",
  ],
  ...[".claude/hooks", ".kiro/hooks", ".kiro/settings", ".yarn/releases", ".yarn/plugins"],
  // kit and other agents load these, and start what they name. Rules, which are prose, are not protected.
  ...[".claude/commands", ".claude/agents", ".claude/skills", ".github/skills", ".continue/mcpservers"],
  ...[".cursor/skills", ".kiro/skills", ".junie/skills", ".junie/mcp"],
  ...[".opencode/plugin", ".opencode/plugins", ".opencode/tool", ".opencode/tools"],
  // Editors start its Python, and terminals its script.
  ...[".venv", "venv/bin", "venv/scripts", ".yarn/sdks"],
  // A shell runs what direnv keeps there, once a person has allowed the `.envrc`.
  ".direnv",
];

/** Protected files by name, at any depth; `*` matches any characters. */
const files = [
  ...[
    "kit.toml",
    "kit.config.*",
    "kit.synced.json",
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
  ],
  ...[
    "pnpm-lock.yaml",
    "pnpm-workspace.yaml",
    "bun.lock",
    "bun.lockb",
    "bunfig.toml",
    "deno.json",
    "deno.jsonc",
  ],
  ...[
    "deno.lock",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.*",
    "tsconfig.json",
    "tsconfig.*.json",
    "tsconfig-*.json",
  ],
  ...[
    "jsconfig.json",
    ".gitmodules",
    ".gitattributes",
    ".gitconfig",
    ".mcp.json",
    ".cursor/mcp.json",
    ".cursor/hooks.json",
  ],
  ...[
    ".claude/settings*.json",
    ".gemini/settings.json",
    ".pre-commit-config.*",
    "lefthook*.y*ml",
    ".lefthook*.y*ml",
    "lefthook*.toml",
    ".lefthook*.toml",
    "lefthook*.json*",
    ".lefthook*.json*",
  ],
  ...[".aider.conf.y*ml", "opencode.json", "opencode.jsonc", ".roo/mcp.json", ".windsurf/hooks.json"],
  ...[".continue/config.*", ".continuerc.json"],
  // Extensions of editors load these, and the plugins that they name, when a person opens a file.
  ...["eslint.config.*", ".eslintrc*", "prettier.config.*", ".prettierrc*"],
  ...["stylelint.config.*", ".stylelintrc*"],
  // Tools of Git hooks, package managers and development containers.
  ...[".huskyrc*", "husky.config.*", "lint-staged.config.*", ".simple-git-hooks.*", "simple-git-hooks.*"],
  ...[".pnp.*", "package.yaml", "package.json5", ".devcontainer.json", ".cirrus.y*ml", ".cirrus.star"],
  // npm builds a package with this file by itself, and cargo, hooks and Git LFS read the others.
  ...["binding.gyp", ".cargo/config", ".cargo/config.toml", "commitlint.config.*", ".commitlintrc*"],
  ...[".overcommit.yml", ".lfsconfig"],
  // Hooks and programs of Mercurial, Sapling and Jujutsu, and what leads to the settings of another repository.
  ...[".hg/hgrc", ".hg/hgrc-not-shared", ".hg/requires", ".hg/sharedpath"],
  ...[".sl/config", ".sl/requires", ".sl/sharedpath", ".jj/repo/config.toml", ".jj/workspace-config.toml"],
  // Editors, and programs that run files of a folder that a person enters.
  ...["*.code-workspace", "*.sublime-project", ".zed/settings.json", ".zed/tasks.json", ".zed/debug.json"],
  ...[
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".vimrc",
    ".lvimrc",
    ".dir-locals*.el",
    ".envrc",
    "mise.toml",
    ".mise.toml",
    "mise.*.toml",
    ".mise.*.toml",
  ],
  ...[".tool-versions", ".config/mise.toml", ".autoenv", ".autoenv.zsh", ".rvmrc", ".gdbinit", ".lldbinit"],
  ...[".lintstagedrc*", "jenkinsfile", ".gitlab-ci.y*ml", ".travis.y*ml", "appveyor.y*ml", ".appveyor.y*ml"],
  ...[
    "azure-pipelines*.y*ml",
    "bitbucket-pipelines.y*ml",
    ".drone.y*ml",
    "cloudbuild.y*ml",
    "buildspec.y*ml",
  ],
];

const protectedAnywhere = new RegExp(
  `(?:^|/)(?:(?:${folders.map(toPattern).join("|")})(?:/|$)|(?:${files.map(toPattern).join("|")})$)`,
);

/** Folders that contain protected paths: new files may be written to them, but they may not be removed. */
const holderNames =
  /(?:^|\/)(?:\.github|\.forgejo|\.gitea|\.claude|\.cursor|\.kiro|\.gemini|\.yarn|\.zed|\.config|\.cargo|\.windsurf|\.roo|\.continue|\.opencode|venv|\.hg|\.sl|\.jj|\.jj\/repo)$/;

function toPattern(name: string): string {
  return name.replace(/[.]/g, "\\.").replace(/\*/g, "[^/]*");
}

/** The folders of agents, workflows and webhooks, relative to the root of the workspace or the project. */
const sources = /^((src\/)?(agents|workflows)|src\/webhooks)(\/|$)/;

/** Folders that contain `sources`: new files may be written to them, but they may not be removed. */
const holders = new Set(["", "src"]);

/** Whether a path names a file of secrets, which models may not read: `.env` and names that begin with it. */
export function isSecretFile(path: string): boolean {
  const name = folded(segmentsOf(path).join("/"));
  return isVariablesName(name);
}

/** Protected paths that a look-up of names in the root of a workspace does not find. */
export const deepProtectedPaths: readonly string[] = [
  ...folders.filter((name) => name.includes("/")),
  ...files.filter((name) => name.includes("/") && !name.includes("*")),
  ...["src/agents", "src/workflows", "src/webhooks", "agents", "workflows", "node_modules/.bin"],
  ...[".claude/settings.json", ".claude/settings.local.json"],
];

/** A change that a tool is about to make. */
export interface PathChange {
  /** Relative to `cwd`, which is relative to the root of the workspace. */
  readonly path: string;
  readonly cwd: string;
  readonly removes?: boolean;
  /** The folders of the workspace and of the agent's project on this machine: one may contain the other. */
  readonly hostRoot?: string | undefined;
  readonly projectRoot?: string | undefined;
  /** Whether the process has loaded a file of this machine, or a file below a folder to be removed. */
  readonly isLoaded?: ((file: string, removes: boolean) => boolean) | undefined;
}

/**
 * Whether models may not change a path. Letter case, Unicode forms of a letter and invisible characters do not
 * matter, because some file systems ignore them. `granted` paths are relative to the root of the workspace.
 */
export function isProtectedPath(change: PathChange, granted: readonly string[]): boolean {
  const segments = segmentsOf(`${change.cwd}/${change.path}`);
  const normalized = segments.join("/");
  if (isGrantedPath(normalized, granted)) return false;
  const inWorkspace = folded(normalized);
  if (protectedAnywhere.test(inWorkspace) || isSecretFile(inWorkspace)) return true;
  const removes = change.removes === true;
  if (removes && holderNames.test(inWorkspace)) return true;
  if (
    change.hostRoot !== undefined &&
    change.isLoaded?.(`${change.hostRoot}/${normalized}`, removes) === true
  )
    return true;
  return [inWorkspace, pathInProject(segments, change)].some(
    (path) => path !== undefined && (sources.test(path) || (removes && holders.has(path))),
  );
}

const guards = new Map<string, PathGuard>();

/** The guard of commands for these grants, which always is the same function for the same arguments. */
export function guardOf(
  place: Pick<PathChange, "hostRoot" | "projectRoot">,
  granted: readonly string[],
): PathGuard {
  const key = JSON.stringify([place.hostRoot, place.projectRoot, granted]);
  const guardPath = (path: string): ReturnType<PathGuard> => {
    if (isGrantedPath(path, granted)) return undefined;
    if (isSecretFile(path)) return "hidden";
    const change = { ...place, path, cwd: "" };
    if (isProtectedPath(change, granted)) return "read-only";
    return isProtectedPath({ ...change, removes: true }, granted) ? "holder" : undefined;
  };
  const guard: PathGuard =
    guards.get(key) ??
    Object.assign(guardPath, { granted: granted.map((path) => segmentsOf(path).join("/")) });
  if (guards.size > 100) guards.clear();
  guards.set(key, guard);
  return guard;
}

/** Whether a path, relative to the root of the workspace, is a granted path or below one. */
export function isGrantedPath(path: string, granted: readonly string[]): boolean {
  const normalized = segmentsOf(path).join("/");
  return granted.some((grant) => {
    const allowed = segmentsOf(grant).join("/");
    return normalized === allowed || normalized.startsWith(`${allowed}/`);
  });
}

/** The path relative to the project's root; "" for the root and folders above it, `undefined` for other places. */
function pathInProject(
  segments: readonly string[],
  { hostRoot, projectRoot }: PathChange,
): string | undefined {
  if (hostRoot === undefined || projectRoot === undefined) return undefined;
  const location = folded([...segmentsOf(hostRoot), ...segments].join("/"));
  const project = folded(segmentsOf(projectRoot).join("/"));
  if (location === project || location === "" || project.startsWith(`${location}/`)) return "";
  return location.startsWith(`${project}/`) ? location.slice(project.length + 1) : undefined;
}

/** Normalizes a path as file systems do that ignore letter case and Unicode forms. */
export function folded(path: string): string {
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
