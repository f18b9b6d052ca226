import { lstatSync, realpathSync, statSync } from "node:fs";
import { isAbsolute, relative, sep } from "node:path";
import { joinPath } from "../../files/obstacle.ts";
import { type Candidate, hasSourceExtension } from "./read-folder.ts";
import { type ScanTreeOptions, scanTree, type TreeChange } from "./scan-tree.ts";
import type { SourceCatalog } from "./source-catalog.ts";
import { errorCodeOf, unreadable, unreadableBecause } from "./source-reader.ts";
import {
  type Aliases,
  createAliases,
  createFileSet,
  createStamps,
  type Folder,
  type Link,
  type Links,
  namesIn,
  parentOf,
  setStamp,
} from "./tree.ts";

export interface ScanProjectOptions extends Omit<ScanTreeOptions, "isSource" | "relisted"> {
  readonly catalog: Pick<SourceCatalog, "isSource" | "isGuidelineFile">;
  /** Links as the previous pass left them. */
  readonly links: Links;
}

/** The difference of a project from the previous pass. Each file has its real path. */
export interface ProjectChange extends TreeChange {
  readonly links: Links;
  readonly aliases: Aliases;
  readonly haveLinksChanged: boolean;
}

/**
 * Walks the tree, and follows the links in it: a link inside the root is another name of its target.
 * Where links are new, gone or changed, it lists the folders whose files have other names now again, because a name decides
 * whether a file is read.
 */
export function* scanProject(options: ScanProjectOptions): Generator<undefined, ProjectChange> {
  const { catalog, previous, root } = options;
  const before = createAliases(options.links, createFileSet(() => previous).has);
  const first = yield* scanTree({ ...options, isSource: sourcesOf(catalog, before) });
  const links = new Map(options.links);
  for (const path of first.removed) links.delete(path);
  const remaining = yield* takeLinks(first, { root, links, catalog });
  const tree = overlay(previous, first);
  const changed = [...changedLinks(options.links, links), ...movedTargets(links, previous, tree)];
  if (changed.length === 0) {
    const candidates = remaining.filter(({ path }) => before.realOf(path) === path);
    return { ...first, candidates, links: options.links, aliases: before, haveLinksChanged: false };
  }

  const after = createAliases(links, createFileSet(() => tree).has);
  const isSource = sourcesOf(catalog, after);
  const relisted = foldersToList(changed, { tree, isSource });
  let change: TreeChange = { ...first, candidates: remaining };
  if (relisted.size > 0) {
    const folders = [...relisted];
    const second = yield* scanTree({
      ...options,
      previous: tree.all(),
      isSource,
      relisted,
      folders,
      isStale: false,
    });
    change = merge(change, { ...second, candidates: yield* takeLinks(second, { root, links, catalog }) });
  }
  return settle(change, { options, links, changed, before, after, isSource });
}

type IsSource = (path: string) => boolean;

/** A file is a source when one of its names is. */
function sourcesOf(catalog: ScanProjectOptions["catalog"], aliases: Aliases): IsSource {
  return (path) => catalog.isSource(path) || aliases.namesOf(path).some(catalog.isSource);
}

interface LinkContext {
  readonly root: string;
  /** Updated in place. */
  readonly links: Map<string, Link>;
  readonly catalog: ScanProjectOptions["catalog"];
}

/** Records the links of a change; returns the candidates that remain to be read or reported. */
function* takeLinks(change: TreeChange, context: LinkContext): Generator<undefined, Candidate[]> {
  const remaining: Candidate[] = [];
  for (const candidate of [...change.candidates, ...(change.otherLinks ?? [])]) {
    const unresolved = takeLink(candidate, context);
    if (unresolved !== undefined) remaining.push(unresolved);
    yield;
  }
  return remaining;
}

function takeLink(candidate: Candidate, { root, links, catalog }: LinkContext): Candidate | undefined {
  const { path, problem, isLink } = candidate;
  if (!isLink) {
    const hard = problem === undefined && catalog.isGuidelineFile(path) ? hardLink(root, path) : undefined;
    if (hard === undefined) links.delete(path);
    else links.set(path, hard);
    return candidate;
  }
  const { link, problem: linkProblem } = problem === undefined ? resolveLink(root, candidate) : {};
  const isSource = catalog.isSource(path);
  const isNoFile = link?.kind === "folder" && isSource && hasSourceExtension(path);
  if (link === undefined || isNoFile) links.delete(path);
  else links.set(path, link);
  if (!isSource || (link?.kind === "folder" && !isNoFile)) return undefined;
  const message = "It is a link to a folder, but has the name of a file.";
  const why =
    problem ?? linkProblem ?? (isNoFile ? unreadable({ path, code: "not_a_file", message }) : undefined);
  return why === undefined ? candidate : { ...candidate, problem: why };
}

interface ResolvedLink {
  readonly link?: Link;
  readonly problem?: Candidate["problem"];
}

/** Resolves a link over chains, and stamps it with the stats of its target. */
function resolveLink(root: string, { path, folder, stampAt }: Candidate): ResolvedLink {
  const nowMs = Date.now();
  try {
    // The native call also returns a name in the case of the file system.
    const real = realpathSync.native(`${root}/${path}`);
    const stats = statSync(real);
    setStamp(folder, stampAt, { stats, nowMs });
    const target = relative(root, real).split(sep).join("/");
    if (target === ".." || target.startsWith("../") || isAbsolute(target)) {
      const message = "It is a link that leads out of the project, so it is not read.";
      return { problem: unreadable({ path, code: "outside_link", message }) };
    }
    if (stats.isDirectory()) return { link: { kind: "folder", target } };
    if (stats.isFile()) return { link: { kind: "file", target } };
    return { problem: unreadable({ path, code: "not_a_file", message: "It is not a regular file." }) };
  } catch (error) {
    return { problem: unreadableBecause(path, errorCodeOf(error)) };
  }
}

function hardLink(root: string, path: string): Link | undefined {
  try {
    const { nlink, dev, ino } = lstatSync(`${root}/${path}`);
    // No path contains NUL, so this never equals one.
    return nlink > 1 ? { kind: "hard", target: `\0${dev}:${ino}` } : undefined;
  } catch {
    return undefined;
  }
}

function changedLinks(before: Links, after: Links): readonly Link[] {
  const changed: Link[] = [];
  for (const [path, link] of before) if (!isSame(link, after.get(path))) changed.push(link);
  for (const [path, link] of after) if (!isSame(link, before.get(path))) changed.push(link);
  return changed;
}

/** Links whose target has become a file of the project, or has ceased to be one, for example because it is ignored now. */
function movedTargets(links: Links, before: Pick<OverlaidTree, "get">, after: OverlaidTree): readonly Link[] {
  if (links.size === 0) return [];
  const [filesBefore, filesAfter] = [createFileSet(() => before), createFileSet(() => after)];
  return [...links.values()].filter(
    ({ kind, target }) => kind === "file" && filesBefore.has(target) !== filesAfter.has(target),
  );
}

function isSame(link: Link, other: Link | undefined): boolean {
  return link.kind === other?.kind && link.target === other.target;
}

/** The tree after a change, as a view without a copy. */
interface OverlaidTree {
  get(path: string): Folder | undefined;
  all(): Map<string, Folder>;
}

function overlay(previous: ScanTreeOptions["previous"], change: TreeChange): OverlaidTree {
  const changed = new Map(change.folders.map((folder) => [folder.path, folder]));
  const removed = new Set(change.removedFolders);
  return {
    get: (path) => changed.get(path) ?? (removed.has(path) ? undefined : previous.get(path)),
    all: () => new Map([...[...previous].filter(([path]) => !removed.has(path)), ...changed]),
  };
}

/** The folders that hold a file which is read by its new names and was not before, or the reverse. */
function foldersToList(
  changed: readonly Link[],
  { tree, isSource }: { readonly tree: OverlaidTree; readonly isSource: IsSource },
): Set<string> {
  const listed = new Set<string>();
  const differs = ({ path, files, sources }: Folder): boolean =>
    namesIn(files).some((name) => isSource(joinPath(path, name))) ||
    namesIn(sources).some((name) => name !== ".gitignore" && !isSource(joinPath(path, name)));
  const linkedFolders = changed.filter(({ kind }) => kind === "folder");
  const folders = linkedFolders.length === 0 ? [] : [...tree.all().values()];
  for (const { kind, target } of changed) {
    const holder = kind === "file" ? tree.get(parentOf(target)) : undefined;
    if (holder !== undefined && differs(holder)) listed.add(holder.path);
    if (kind !== "folder") continue;
    for (const folder of folders) {
      const isBelow = target === "" || folder.path === target || folder.path.startsWith(`${target}/`);
      if (isBelow && differs(folder)) listed.add(folder.path);
    }
  }
  return listed;
}

/** Joins the changes of two scans, the second of which listed folders of the first again. */
function merge(first: TreeChange, second: TreeChange): TreeChange {
  const again = new Set(second.folders.map(({ path }) => path));
  const candidates = [
    ...first.candidates.filter(({ folder }) => !again.has(folder.path)),
    ...second.candidates,
  ];
  const seen = new Set(candidates.map(({ path }) => path));
  return {
    folders: [...new Map([...first.folders, ...second.folders].map((each) => [each.path, each])).values()],
    removedFolders: [...new Set([...first.removedFolders, ...second.removedFolders])],
    candidates,
    removed: [...new Set([...first.removed, ...second.removed])].filter((path) => !seen.has(path)),
  };
}

interface Settlement {
  readonly options: ScanProjectOptions;
  readonly links: Links;
  readonly changed: readonly Link[];
  readonly before: Aliases;
  readonly after: Aliases;
  readonly isSource: IsSource;
}

/** Gives every file its real path. Aliases are not read; files whose names have changed are read again. */
function settle(change: TreeChange, { options, links, before, after, isSource }: Settlement): ProjectChange {
  const names = new Set([...options.links.keys(), ...links.keys()]);
  const removed = new Set(change.removed);
  const reals = new Set<string>();
  for (const name of names) {
    if (after.realOf(name) !== name) removed.add(name);
    for (const real of [before.realOf(name), after.realOf(name)]) reals.add(real);
    const { kind, target } = links.get(name) ?? options.links.get(name) ?? { kind: "hard", target: "" };
    if (kind !== "folder") continue;
    for (const path of sourcesBelow(target, change, options.previous))
      for (const real of [before.realOf(path), after.realOf(path)]) reals.add(real);
  }
  const candidates = change.candidates.filter(({ path }) => after.realOf(path) === path);
  const ownPaths = new Set(candidates.map(({ path }) => path));
  const renamed = new Set<string>();
  for (const path of reals) {
    if (after.realOf(path) !== path || removed.has(path) || !isSource(path)) continue;
    if (before.realOf(path) === path && before.namesOf(path).join("\n") === after.namesOf(path).join("\n"))
      continue;
    renamed.add(path);
    if (!ownPaths.has(path)) candidates.push(toCandidate(path));
  }
  return {
    ...change,
    candidates,
    removed: [...removed].filter((path) => !ownPaths.has(path) && !renamed.has(path)),
    links,
    aliases: after,
    haveLinksChanged: true,
  };
}

/** The files below a linked folder that are read. */
function sourcesBelow(folder: string, change: TreeChange, previous: ScanTreeOptions["previous"]): string[] {
  const folders = new Map([...previous, ...change.folders.map((each) => [each.path, each] as const)]);
  const removedFolders = new Set(change.removedFolders);
  return [...folders.values()].flatMap(({ path, sources }) => {
    const isBelow = folder === "" || path === folder || path.startsWith(`${folder}/`);
    return isBelow && !removedFolders.has(path) ? namesIn(sources).map((name) => joinPath(path, name)) : [];
  });
}

/** A candidate for a source with an unchanged stamp: the pass writes its stamp to a folder that is discarded. */
function toCandidate(path: string): Candidate {
  const folder = {
    path: parentOf(path),
    folders: "",
    files: "",
    sources: "-",
    stamps: createStamps(1),
  };
  return { path, folder, stampAt: 1, isLink: false };
}
