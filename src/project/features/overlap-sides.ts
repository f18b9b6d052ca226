import type { SpecDraft } from "../../specs/adapter.ts";
import { slugOf } from "../../specs/model/block-title.ts";
import { createSpecRegistry } from "../../specs/registry.ts";
import type { Project } from "../project.ts";
import {
  type Branch,
  findBranch,
  findBranches,
  findMainBranch,
  type InRepository,
  readDifference,
} from "../scan/git/branches.ts";
import { findMergeBase, readChangedFiles, readFilesAt, readGitState } from "../scan/git/git-state.ts";
import { decodeText } from "../scan/source-reader.ts";
import { readFileInside } from "./write-file.ts";

/** One of those that claim a block. */
export interface OverlapPart {
  /** The branch that has it; absent for the work tree. */
  readonly branch?: string;
  /** The open change of OpenSpec, and what it does to the requirement. */
  readonly change?: string;
  readonly delta?: string;
  readonly path: string;
  readonly line: number;
}

export interface OverlapOptions {
  /** Default: the main branch of the remote, else `main` or `master`. */
  readonly base?: string | undefined;
  /** Globs of further branches, such as `origin/*`. Default: none. */
  readonly branches?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A requirement that an open change claims. */
export interface Delta extends OverlapPart {
  readonly key: string;
  readonly change: string;
  readonly feature: string;
  readonly title: string;
}

/** The work tree, the base, or a branch. */
export interface Side {
  /** Absent for the work tree. */
  readonly branch?: string;
  readonly isBase: boolean;
  readonly commit: string;
  /** Spec files that differ from the commit that it has in common with the base. */
  readonly changed: ReadonlySet<string>;
  readonly deltas: readonly Delta[];
  readonly base: ChangedBase;
  texts(paths: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** The changes of the base since the commit that a side has in common with it. */
interface ChangedBase {
  /** Spec files. */
  readonly files: ReadonlySet<string>;
  /** Keys of requirements whose text is another one. */
  readonly keys: ReadonlySet<string>;
  /** Changes that it has archived or dropped. */
  readonly closed: ReadonlySet<string>;
}

/**
 * A block that is changed twice. `changes`: by several open changes of OpenSpec; `base`: by an open change, and by the base since the
 * branch of the change began; `branches`: in different words on several branches.
 */
export interface Overlap {
  readonly kind: "changes" | "base" | "branches";
  /** The capability or feature: `shipping`. */
  readonly feature: string;
  readonly title: string;
  readonly parts: readonly OverlapPart[];
}

export interface OverlapReport {
  /** In path, then line order. */
  readonly overlaps: readonly Overlap[];
  /** The branch that the others are compared with; absent without one. */
  readonly base?: string;
  readonly branches: readonly string[];
  /** Sentences about what could not be compared. */
  readonly notes: readonly string[];
}

interface Sides {
  readonly sides: readonly Side[];
  readonly base?: string | undefined;
  readonly notes: readonly string[];
}

const registry = createSpecRegistry();
export const adapterNameOf = (path: string): string | undefined => registry.adapterFor(path)?.name;
const sameBase: ChangedBase = { files: new Set(), keys: new Set(), closed: new Set() };

/** Reads the work tree, the base and the branches, as far as Git has them. */
export async function readSides(
  project: Pick<Project, "root" | "specs">,
  { base: baseName, branches, signal }: OverlapOptions,
): Promise<Sides> {
  const { root, specs } = project;
  const state = await readGitState(root, signal);
  const deltas = Array.from(specs.all()).flatMap((block) =>
    deltasOf({ ...block, span: block.metadata.source ?? { start_line: 1 } }, block.path),
  );
  const workTree: Side = {
    ...{ isBase: false, commit: "HEAD", changed: new Set(), deltas, base: sameBase },
    texts: async (paths) => await readWorkTree(root, paths),
  };
  if (state.kind === "none" || state.head === undefined) {
    const reason = state.kind === "none" ? state.reason : "The repository has no commit yet.";
    return { sides: [workTree], notes: [`${reason} So kit compares only the open changes of this folder.`] };
  }
  const repository: SpecRepository = {
    ...{ root, signal },
    isSpec: (path) => specs.frameworkOf(path) !== undefined && adapterNameOf(path) !== undefined,
  };
  const base =
    baseName === undefined ? await findMainBranch(repository) : await findBranch(repository, baseName);
  const others = branches === undefined ? [] : await findBranches(repository, branches);
  if (base === undefined)
    return {
      sides: [workTree],
      notes: ["There is no branch main or master to compare with: name one with --base."],
    };
  const advice = state.boundary.size > 0 ? " The clone is shallow: git fetch --unshallow." : "";
  const notes: string[] = [];
  const here = await readHere(repository, { workTree, base, head: state.head });
  if (here === undefined) notes.push(`HEAD and ${base.name} have no commit in common here.${advice}`);
  const sides: Side[] = [here ?? workTree];
  const known = new Set([base.commit, state.head]);
  for (const branch of [base, ...others.filter(({ commit }) => !known.has(commit))]) {
    signal?.throwIfAborted();
    const side = await readBranch(repository, { branch, base, head: state.head });
    if (side !== undefined) sides.push(side);
    else if (branch !== base)
      notes.push(`${branch.name} and ${base.name} have no commit in common here.${advice}`);
  }
  return { sides, base: base.name, notes };
}

interface SpecRepository extends InRepository {
  isSpec(path: string): boolean;
}

async function readHere(
  repository: SpecRepository,
  { workTree, base, head }: { readonly workTree: Side; readonly base: Branch; readonly head: string },
): Promise<Side | undefined> {
  const { root, signal, isSpec } = repository;
  const start = await findMergeBase(repository, [base.commit, head]);
  if (start === undefined) return undefined;
  const committed = await readDifference(repository, [start, head]);
  const uncommitted = await readChangedFiles({ root, since: "HEAD", ...(signal && { signal }) });
  const changed = [...committed.keys(), ...uncommitted.map(({ path }) => path)].filter(isSpec);
  const ofBase = await changedOnBase(repository, start, base);
  return { ...workTree, commit: head, changed: new Set(changed), base: ofBase };
}

/** A branch with the changes that it has begun, or the base with those that it has begun since the branch of the work tree. */
async function readBranch(
  repository: SpecRepository,
  { branch, base, head }: { readonly branch: Branch; readonly base: Branch; readonly head: string },
): Promise<Side | undefined> {
  const isBase = branch === base;
  const { name, commit } = branch;
  const start = await findMergeBase(repository, [commit, isBase ? head : base.commit]);
  if (start === undefined) return undefined;
  const files = await readDifference(repository, [start, commit]);
  const changed = [...files.keys()].filter(repository.isSpec);
  const texts: Side["texts"] = async (paths) => await readCommit(repository, commit, paths);
  const proposed = await texts(
    changed.filter((path) => files.get(path) && adapterNameOf(path) === "openspec"),
  );
  const deltas = [...proposed].flatMap(([path, text]) =>
    draftsOf(path, text).flatMap((draft) => deltasOf(draft, path)),
  );
  return {
    ...{ branch: name, isBase, commit, texts },
    changed: new Set(isBase ? [] : changed),
    deltas: deltas.map((delta) => ({ ...delta, branch: name })),
    base: isBase ? sameBase : await changedOnBase(repository, start, base),
  };
}

async function changedOnBase(
  repository: SpecRepository,
  start: string,
  { commit }: Branch,
): Promise<ChangedBase> {
  const all = await readDifference(repository, [start, commit]);
  const files = [...all.keys()].filter(repository.isSpec);
  const paths = files.filter((path) => adapterNameOf(path) === "openspec");
  const before = await readCommit(repository, start, paths);
  const after = await readCommit(repository, commit, paths);
  const keys = new Set<string>();
  const closed = new Set<string>();
  for (const path of paths) {
    const old = requirementsOf(path, before.get(path));
    const now = requirementsOf(path, after.get(path));
    for (const key of [...old.keys(), ...now.keys()]) if (old.get(key) !== now.get(key)) keys.add(key);
    if (all.get(path) === true) continue;
    for (const draft of draftsOf(path, before.get(path) ?? ""))
      for (const { change } of deltasOf(draft, path)) closed.add(change);
  }
  return { files: new Set(files), keys, closed };
}

/** The texts of files as a commit has them. */
export async function readCommit(
  { root, signal }: InRepository,
  commit: string,
  paths: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const files = await readFilesAt({ root, commit, paths, ...(signal && { signal }) });
  return new Map([...files].map(([path, bytes]) => [path, decodeText(bytes, path).text]));
}

async function readWorkTree(root: string, paths: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  for (const path of paths) {
    const bytes = await readFileInside(root, { path }).catch(() => undefined);
    if (bytes !== undefined) texts.set(path, decodeText(bytes, path).text);
  }
  return texts;
}

/** The blocks of a text, by the adapter that kit has for its path. */
export function draftsOf(path: string, text: string): readonly SpecDraft[] {
  return registry.adapterFor(path)?.parse({ path, text }).drafts ?? [];
}

/** The claims of a requirement in an open change: a new name claims the old one, too. */
function deltasOf(
  {
    metadata,
    lifecycle,
    title,
    span,
  }: Pick<SpecDraft, "metadata" | "lifecycle" | "title"> & {
    readonly span: { readonly start_line: number };
  },
  path: string,
): readonly Delta[] {
  const { tool, delta, change, capability, renamed_from: from } = metadata;
  if (tool !== "openspec" || lifecycle === "obsolete") return [];
  if (typeof delta !== "string" || typeof change !== "string" || typeof capability !== "string") return [];
  const claim = (name: string): Delta => ({
    key: keyOf(path, capability, name),
    ...{ change, delta, path, title: name },
    feature: capability,
    line: span.start_line,
  });
  return [claim(title), ...(typeof from === "string" ? [claim(from)] : [])];
}

/** The same requirement of a current spec and of a change, also if it is written in another case. */
function keyOf(path: string, capability: string, name: string): string {
  return `${path.slice(0, path.lastIndexOf("openspec/"))}\n${capability}\n${slugOf(name) || name}`;
}

/** The texts of the requirements of a current spec of OpenSpec. */
function requirementsOf(path: string, text: string | undefined): ReadonlyMap<string, string> {
  const drafts = text === undefined ? [] : draftsOf(path, text);
  return new Map(
    drafts.flatMap(({ metadata: { requirement, delta, capability }, title, content }) =>
      requirement === undefined || delta !== undefined || typeof capability !== "string"
        ? []
        : [[keyOf(path, capability, title), content] as const],
    ),
  );
}
