import { createHash } from "node:crypto";
import { KitError } from "../../base/kit-error.ts";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import type {
  StaleAcceptance,
  StaleFile,
  StalePage,
  StaleQuery,
  StaleReport,
  StaleSpec,
} from "../../protocol/stale.ts";
import { isRuleBlock } from "../../specs/frameworks.ts";
import type { Project } from "../project.ts";
import { pageList } from "../query/page.ts";
import { type GitState, readChangedFiles, readGitState } from "../scan/git/git-state.ts";
import { type Base, readDrift } from "./drift.ts";
import { assertWritable, readFileInside, type WritableRoot, writeFileInside } from "./write-file.ts";

export interface StaleOptions {
  readonly signal?: AbortSignal | undefined;
}

type StaleProject = Pick<Project, "root" | "specs" | "datesOf">;

/**
 * Finds the blocks whose `code_refs` differ from the commit that changed the lines of the block last, by more than spaces, unless a user
 * accepted the block with the current code. Uncommitted changes count on both sides: a block that is being edited is not stale. Done tasks
 * and obsolete blocks describe the past, so they are never stale.
 *
 * Without a repository no block is stale, and the report has a note.
 *
 * @example
 * ```ts
 * import { openProject } from "kit";
 * import { staleSpecs } from "kit/project";
 *
 * const project = await openProject({ root: "." });
 * for (const { id } of (await staleSpecs(project)).stale) console.log(id);
 * await project.close();
 * ```
 */
export async function staleSpecs(project: StaleProject, options: StaleOptions = {}): Promise<StaleReport> {
  const { root } = project;
  const { signal } = options;
  const state = await readGitState(root, signal);
  const withCode: SpecBlock[] = [];
  for (const block of project.specs.all()) if (canFallBehind(block)) withCode.push(block);
  if (state.kind === "none" || state.head === undefined) {
    return { stale: [], checked: withCode.length, notes: notesOn(state) };
  }
  const uncommitted = await readUncommitted(root, signal);
  const { acceptances, unreadableLines } = await readAcceptances(root);
  const accepted = Map.groupBy(acceptances, ({ id }) => id);
  const hashes = createHashes(root);
  const questions = withCode.flatMap((block) => {
    const code = comparedCode(project, block, uncommitted);
    return code.length === 0 ? [] : [{ block, code }];
  });
  const drift = await readDrift(project, questions, {
    head: state.head,
    historyKey: state.historyKey,
    uncommitted,
    signal,
  });
  const stale: StaleSpec[] = [];
  for (const { block } of questions) {
    const found = drift?.get(block);
    if (found === undefined) continue;
    const acceptances = accepted.get(block.id) ?? [];
    const files: StaleFile[] = [];
    for (const [path, change] of found.changes) {
      if (await isAccepted(path, acceptances, hashes)) continue;
      const dates = project.datesOf(path);
      files.push({
        path,
        ...(dates !== undefined && { changed_at: toIso(dates.last) }),
        ...(dates !== undefined && !uncommitted.has(path) && { commit: dates.commit }),
        ...change,
      });
    }
    if (files.length > 0) stale.push(toStaleSpec(block, { base: found.base, files, accepted: acceptances }));
  }
  const notes = [
    ...notesOn(state),
    ...(drift === undefined
      ? ["Git did not tell how the code has changed, so kit cannot tell which specs are stale."]
      : []),
    ...unreadableLines.map((line) => `${acceptancesFile}, line ${line}, cannot be read.`),
  ];
  return { stale, checked: withCode.length, notes };
}

/** One page of the stale blocks of a report. */
export function pageStale(report: StaleReport, query: StaleQuery): StalePage {
  const { items, ...rest } = pageList(report.stale, query, { about: "stale", keyOf: ({ id }) => id });
  return { ...report, stale: items, ...rest };
}

/**
 * Records that blocks still hold with the current code, in a file to be committed. A block that is not stale gets no acceptance.
 *
 * Throws `spec_not_found` for an unknown id, `forbidden` in a read-only project and `conflict` for a file of acceptances that
 * cannot be read.
 *
 * @example
 * ```ts
 * import { openProject } from "kit";
 * import { acceptStale } from "kit/project";
 *
 * const project = await openProject({ root: "." });
 * await acceptStale(project, { ids: ["fw_a-returns-requirements-req1"] });
 * await project.close();
 * ```
 */
export async function acceptStale(
  project: StaleProject & Pick<Project, "readOnly">,
  request: StaleOptions & {
    /** Default: every stale block. */
    readonly ids?: readonly string[] | undefined;
    /** Default: now. */
    readonly at?: Date;
  } = {},
): Promise<StaleAcceptance> {
  assertWritable(project);
  for (const id of request.ids ?? []) {
    if (project.specs.get(id) === undefined) {
      throw new KitError({ code: "spec_not_found", message: `There is no spec with the id "${id}".` });
    }
  }
  const { stale } = await staleSpecs(project, request);
  const chosen = stale.filter(({ id }) => request.ids?.includes(id) ?? true);
  if (chosen.length === 0) return { accepted: [] };
  const at = (request.at ?? new Date()).toISOString();
  const hashes = createHashes(project.root);
  const added: Acceptance[] = [];
  for (const { id, files } of chosen) {
    for (const { path } of files) {
      const hash = await hashes(path);
      if (hash !== undefined) added.push({ id, path, hash, at });
    }
  }
  const isKept = ({ id, path }: Acceptance): boolean =>
    project.specs.get(id)?.metadata.code_refs?.includes(path) ?? false;
  await writeAcceptances(project, { added, isKept });
  return { accepted: chosen.map(({ id }) => id), written_to: acceptancesFile };
}

function canFallBehind({ framework, spec_type, lifecycle, metadata }: SpecBlock): boolean {
  if (lifecycle === "obsolete" || (spec_type === "task" && metadata.status === "done")) return false;
  return codeOf({ framework, spec_type, metadata }).length > 0;
}

/** Extensions of code files. Instruction files name other files in passing, without describing them. */
const codeFile =
  /\.(?:astro|c|cc|cjs|clj|cpp|cs|cts|dart|ex|exs|fs|go|h|hpp|hs|java|js|jsx|kt|kts|lua|m|mjs|ml|mts|php|pl|py|r|rb|rs|scala|sh|sql|svelte|swift|ts|tsx|vue|zig)$/i;

/**
 * The code that a block describes. A rule of an instruction file names files in passing: manifests, settings,
 * documents, whole folders of tests. Only code counts there.
 */
export function codeOf(block: Pick<SpecBlock, "framework" | "spec_type" | "metadata">) {
  const files = block.metadata.code_refs ?? [];
  return isRuleBlock(block) ? files.filter((path) => codeFile.test(path)) : files;
}

/** The code files of a block that are committed or new, if the block's own file is committed. */
function comparedCode(
  project: StaleProject,
  block: SpecBlock,
  uncommitted: ReadonlySet<string>,
): readonly string[] {
  if (project.datesOf(block.path) === undefined) return [];
  return codeOf(block).filter((path) => project.datesOf(path) !== undefined || uncommitted.has(path));
}

function toStaleSpec(
  block: SpecBlock,
  {
    base,
    files,
    accepted,
  }: {
    readonly base: Base;
    readonly files: readonly StaleFile[];
    readonly accepted: readonly Acceptance[];
  },
): StaleSpec {
  const last = accepted
    .map(({ at }) => at)
    .sort()
    .at(-1);
  return {
    id: block.id,
    title: block.title,
    path: block.path,
    line: block.metadata.source?.start_line ?? 1,
    base: base.commit,
    updated_at: toIso(base.time),
    accepted_at: last,
    files,
  };
}

async function isAccepted(
  path: string,
  accepted: readonly Acceptance[],
  hashes: (path: string) => Promise<string | undefined>,
): Promise<boolean> {
  const acceptances = accepted.filter((acceptance) => acceptance.path === path);
  if (acceptances.length === 0) return false;
  const hash = await hashes(path);
  return acceptances.some((acceptance) => acceptance.hash === hash);
}

async function readUncommitted(root: string, signal: AbortSignal | undefined): Promise<ReadonlySet<string>> {
  const changes = await readChangedFiles({ root, since: "HEAD", ...(signal && { signal }) });
  return new Set(changes.map(({ path }) => path));
}

/** Hashes of files, each read once; undefined for a file that cannot be read. */
export function createHashes(root: string): (path: string) => Promise<string | undefined> {
  const hashes = new Map<string, string | undefined>();
  return async (path) => {
    if (!hashes.has(path)) {
      const bytes = await readFileInside(root, { path }).catch(() => undefined);
      hashes.set(path, bytes && contentHash(bytes));
    }
    return hashes.get(path);
  };
}

/** The first 32 hex digits of SHA-256; ignores line ends, because Git can change them. */
export function contentHash(bytes: Uint8Array): string {
  const text = Buffer.from(bytes).toString("latin1").replaceAll("\r\n", "\n");
  return createHash("sha256").update(text, "latin1").digest("hex").slice(0, 32);
}

function notesOn(state: GitState): readonly string[] {
  if (state.kind === "none") return [`${state.reason} So kit cannot tell which specs are stale.`];
  if (state.head === undefined) return ["The repository has no commit yet, so nothing is stale."];
  if (state.boundary.size === 0) return [];
  return ["The clone is shallow: changes before its first commit are not seen. Fetch the whole history."];
}

const toIso = (seconds: number): string => new Date(seconds * 1000).toISOString().replace(".000Z", "Z");

/**
 * The file of acceptances, in the root of the project. Users commit it, so that acceptances hold for the whole team.
 *
 * @see decisions/2026-11-21-accepted-specs.md
 */
const acceptancesFile = "kit.accepted.jsonl";

/** A user accepted a block: it is still correct for the version that the named file had then. */
interface Acceptance {
  /** The id of the block. */
  readonly id: string;
  /** The file that the block names, project-relative. */
  readonly path: string;
  /** `contentHash` of that file. */
  readonly hash: string;
  /** ISO 8601. */
  readonly at: string;
}

interface AcceptanceFile {
  /** The bytes as read; null where there is no file. */
  readonly bytes: Uint8Array | null;
  readonly acceptances: readonly Acceptance[];
  /** 1-based lines that are no acceptance, such as those of a merge conflict. */
  readonly unreadableLines: readonly number[];
}

/** Reads the acceptances: one JSON object per line, in any order, repeated ones included. */
async function readAcceptances(root: string): Promise<AcceptanceFile> {
  const bytes = (await readFileInside(root, { path: acceptancesFile })) ?? null;
  const acceptances: Acceptance[] = [];
  const unreadableLines: number[] = [];
  const text = bytes === null ? "" : new TextDecoder().decode(bytes);
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const acceptance = parseAcceptance(line);
    if (acceptance === undefined) unreadableLines.push(index + 1);
    else acceptances.push(acceptance);
  }
  return { bytes, acceptances, unreadableLines };
}

/**
 * Adds acceptances, each of which replaces an earlier one of the same block and file, and drops those
 * that `isKept` refuses. Writes nothing where nothing changes.
 *
 * Throws `conflict` for a file with lines that are no acceptance, because writing would lose them.
 */
async function writeAcceptances(
  target: WritableRoot,
  changes: { readonly added: readonly Acceptance[]; readonly isKept: (acceptance: Acceptance) => boolean },
): Promise<void> {
  const { bytes, acceptances, unreadableLines } = await readAcceptances(target.root);
  const [line] = unreadableLines;
  if (line !== undefined) {
    throw new KitError({
      code: "conflict",
      message: `${acceptancesFile}, line ${line}, is not an acceptance; nothing was written.`,
      hint: "Resolve the merge conflict there, or remove the line.",
    });
  }
  const entries = new Map<string, Acceptance>();
  const keyOf = ({ id, path }: Acceptance): string => `${id}\n${path}`;
  for (const acceptance of acceptances.filter(changes.isKept)) {
    const recorded = entries.get(keyOf(acceptance));
    if (recorded === undefined || recorded.at <= acceptance.at) entries.set(keyOf(acceptance), acceptance);
  }
  // Clocks of machines differ: the new acceptance replaces an older one even where that has a later time.
  for (const acceptance of changes.added) entries.set(keyOf(acceptance), acceptance);
  // Sorted, one per line, and without a comma in between: two branches merge without a conflict.
  const lines = [...entries].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => JSON.stringify(entry));
  const content = lines.map((line) => `${line}\n`).join("");
  if (bytes !== null && content === new TextDecoder().decode(bytes)) return;
  await writeFileInside(target, { path: acceptancesFile, content, expected: bytes });
}

function parseAcceptance(line: string): Acceptance | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== "object" || value === null) return undefined;
    const { id, path, hash, at }: Partial<Record<keyof Acceptance, unknown>> = value;
    if (typeof id !== "string" || typeof path !== "string" || typeof hash !== "string") return undefined;
    return typeof at === "string" ? { id, path, hash, at } : undefined;
  } catch {
    return undefined;
  }
}
