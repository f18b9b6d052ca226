import { createHash } from "node:crypto";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import type { StaleFile } from "../../protocol/stale.ts";
import type { Project } from "../project.ts";
import { findBlockBases, withLineFeeds } from "../scan/git/block-bases.ts";
import {
  blobAt,
  commitCounter,
  type FileHistory,
  readBlobs,
  readFileHistory,
} from "../scan/git/file-history.ts";
import { decodeText } from "../scan/source-reader.ts";
import { changedLines } from "./changed-lines.ts";
import { readFileInside } from "./write-file.ts";

/** How a code file differs from a commit, spaces aside. */
type CodeChange = Pick<StaleFile, "commits" | "lines_added" | "lines_removed">;

/** A block with its code files. */
interface DriftQuestion {
  readonly block: SpecBlock;
  readonly code: readonly string[];
}

/** The commit that gave the lines of a block their present form. */
export interface Base {
  readonly commit: string;
  /** In seconds since 1970. */
  readonly time: number;
}

interface Drift {
  readonly base: Base;
  /** By path; only files that differ. */
  readonly changes: ReadonlyMap<string, CodeChange>;
}

interface DriftOptions {
  readonly head: string;
  /** Identifies the commits that the repository has. */
  readonly historyKey: string;
  /** Files of the work tree that differ from the head. */
  readonly uncommitted: ReadonlySet<string>;
  readonly signal: AbortSignal | undefined;
}

/** A code file at a base and at the head. */
interface Versions {
  /** Undefined where the commit does not have the file. */
  readonly before: string | undefined;
  readonly after: string | undefined;
  /** The commits in between that changed it. */
  readonly commits: number;
  /** Null if only spaces differ; undefined until it is known. */
  change?: CodeChange | null;
}

/** The answers of Git about one state of the history. */
interface Answers {
  readonly historyKey: string;
  /** By file and the digest of the block's text; null for a text that is not committed. */
  readonly bases: Map<string, Base | null>;
  /** By base and path. */
  readonly versions: Map<string, Versions>;
}

/** A server asks about the same commit again and again. An entry lives as long as its project. */
const answersOf = new WeakMap<object, Answers>();

const keyOf = (first: string, second: string): string => `${first}\0${second}`;

/**
 * Tells for each block since which commit its lines are as they are now, and how its code differs from that commit. A block whose lines
 * are not committed has no answer: its author is still at work. Undefined if Git cannot answer.
 *
 * Git walks its history once for all blocks, and reads only versions of spec files and of code that differs. A project remembers the answers
 * until its head is another one.
 */
export async function readDrift(
  project: Pick<Project, "root">,
  questions: readonly DriftQuestion[],
  options: DriftOptions,
): Promise<ReadonlyMap<SpecBlock, Drift> | undefined> {
  let answers = answersOf.get(project);
  if (answers?.historyKey !== options.historyKey) {
    answers = { historyKey: options.historyKey, bases: new Map(), versions: new Map() };
    answersOf.set(project, answers);
  }
  if (!(await learn(project.root, { answers, questions, ...options }))) return undefined;
  const drift = new Map<SpecBlock, Drift>();
  for (const { block, code } of questions) {
    const base = answers.bases.get(keyOfBlock(block));
    if (base === undefined || base === null) continue;
    const changes = new Map<string, CodeChange>();
    for (const path of code) {
      const versions = answers.versions.get(keyOf(base.commit, path));
      if (versions === undefined) continue;
      const change = options.uncommitted.has(path)
        ? await compareFile(project.root, { path, versions, signal: options.signal })
        : versions.change;
      if (change !== undefined && change !== null) changes.set(path, change);
    }
    if (changes.size > 0) drift.set(block, { base, changes });
  }
  return drift;
}

/** Identifies the words of a block in its file. */
function keyOfBlock({ path, title, content, metadata: { status = "" } }: SpecBlock): string {
  return keyOf(path, createHash("sha256").update([status, title, content].join("\0")).digest("base64url"));
}

/** The lines of the blocks, as their files have them now; empty for a file that cannot be read. */
async function readTexts(
  root: string,
  questions: readonly DriftQuestion[],
): Promise<ReadonlyMap<SpecBlock, string>> {
  const texts = new Map<SpecBlock, string>();
  for (const [path, own] of Map.groupBy(questions, ({ block }) => block.path)) {
    const bytes = await readFileInside(root, { path }).catch(() => undefined);
    const lines = bytes === undefined ? [] : withLineFeeds(decodeText(bytes, path).text).split("\n");
    for (const { block } of own) texts.set(block, textOf(block, lines));
  }
  return texts;
}

/** The lines of a block without blank ones around it, which belong to no block. */
function textOf({ metadata }: SpecBlock, lines: readonly string[]): string {
  const { start_line = 1, end_line = lines.length } = metadata.source ?? {};
  const own = lines.slice(start_line - 1, end_line);
  const isFull = (line: string): boolean => line.trim() !== "";
  return own.slice(Math.max(0, own.findIndex(isFull)), own.findLastIndex(isFull) + 1).join("\n");
}

interface Lesson extends DriftOptions {
  readonly answers: Answers;
  readonly questions: readonly DriftQuestion[];
}

/** Adds what is not known yet to the answers. Returns whether Git could tell. */
async function learn(root: string, lesson: Lesson): Promise<boolean> {
  const { answers, questions, head, signal } = lesson;
  const isKnown = ({ block, code }: DriftQuestion): boolean => {
    const base = answers.bases.get(keyOfBlock(block));
    if (base === undefined) return false;
    return base === null || code.every((path) => answers.versions.has(keyOf(base.commit, path)));
  };
  const open = questions.filter((question) => !isKnown(question));
  if (open.length === 0) return true;
  const paths = new Set(open.flatMap(({ block, code }) => [block.path, ...code]));
  const history = await readFileHistory({ root, head, paths, signal });
  if (history === undefined) return false;
  const texts = await readTexts(root, open);
  const byFile = new Map<string, string[]>();
  for (const [{ path }, text] of texts)
    if (text !== "") byFile.set(path, [...(byFile.get(path) ?? []), text]);
  const found = await findBlockBases({ root, history, texts: byFile, signal });
  if (found === undefined) return false;
  const pathsOfBase = new Map<number, Set<string>>();
  for (const { block, code } of open) {
    const at = found.get(block.path)?.get(texts.get(block) ?? "");
    answers.bases.set(keyOfBlock(block), at === undefined ? null : baseAt(history, at));
    if (at === undefined) continue;
    const own = pathsOfBase.get(at) ?? new Set();
    for (const path of code) own.add(path);
    pathsOfBase.set(at, own);
  }
  const differing: (Versions & { readonly path: string })[] = [];
  for (const [at, own] of pathsOfBase) {
    const count = commitCounter(history, at);
    for (const path of own) {
      const [before, after] = [blobAt(history, path, at), blobAt(history, path, 0)];
      const versions: Versions = { before, after, commits: before === after ? 0 : count(path), change: null };
      answers.versions.set(keyOf(baseAt(history, at).commit, path), versions);
      if (before !== after) differing.push(Object.assign(versions, { path }));
    }
  }
  return await compareBlobs(root, differing, signal);
}

function baseAt({ hashes, times }: FileHistory, at: number): Base {
  return { commit: hashes[at] ?? "", time: times[at] ?? 0 };
}

/** Files whose versions are in memory together. */
const pairsAtOnce = 500;

async function compareBlobs(
  root: string,
  differing: readonly (Versions & { readonly path: string })[],
  signal: AbortSignal | undefined,
): Promise<boolean> {
  for (let from = 0; from < differing.length; from += pairsAtOnce) {
    const some = differing.slice(from, from + pairsAtOnce);
    const ids = some.flatMap(({ before, after }) => [before, after]).filter((id) => id !== undefined);
    const blobs = await readBlobs(root, ids, signal);
    if (blobs === undefined) return false;
    for (const versions of some) {
      const [before, after] = [versions.before, versions.after].map((id) =>
        id === undefined ? Buffer.alloc(0) : blobs.get(id),
      );
      versions.change = toChange(versions, before, after);
    }
  }
  return true;
}

/** A file of the work tree against its version at a base. */
async function compareFile(
  root: string,
  {
    path,
    versions,
    signal,
  }: { readonly path: string; readonly versions: Versions; readonly signal: AbortSignal | undefined },
): Promise<CodeChange | null> {
  const bytes = await readFileInside(root, { path }).catch(() => undefined);
  const { before } = versions;
  const blobs = before === undefined ? undefined : await readBlobs(root, [before], signal);
  return toChange(versions, before === undefined ? Buffer.alloc(0) : blobs?.get(before), bytes);
}

/** Null if only spaces differ. A file that cannot be compared, or has no lines, counts as changed. */
function toChange(
  { commits }: Versions,
  before: Uint8Array | undefined,
  after: Uint8Array | undefined,
): CodeChange | null {
  const since = commits === 0 ? {} : { commits };
  if (before === undefined || after === undefined || before.includes(0) || after.includes(0)) return since;
  const [old, now] = [before, after].map((bytes) => Buffer.from(bytes).toString("latin1"));
  const lines = changedLines(old ?? "", now ?? "");
  return lines === undefined ? null : { ...since, lines_added: lines.added, lines_removed: lines.removed };
}
