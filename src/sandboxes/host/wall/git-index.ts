import { createHash } from "node:crypto";

/** The mode of a gitlink: an entry for another repository, in which Git then runs with that repository's settings. */
const gitlinkMode = 0o160000;
/** The mode of a folder outside of a sparse checkout. */
const sparseMode = 0o040000;
const extendedFlag = 0x4000;
const assumedFlag = 0x8000;
/** This flag is one of the extended flags. */
const skippedFlag = 0x4000;
const lengthMask = 0xfff;

interface Entry {
  /** Times, mode, object and flags. */
  readonly head: Buffer;
  readonly name: Buffer;
  readonly mode: number;
  /** 0, or a side of a conflict. */
  readonly stage: number;
}

/** The entries of a Git index. */
export interface GitIndex {
  readonly entries: readonly Entry[];
  readonly gitlinks: ReadonlySet<string>;
  /** Whether it holds whole folders, as in a sparse checkout. */
  readonly isSparse: boolean;
}

/**
 * Reads an index as Git does (`read-cache.c`): a name has the length that its flags say, so that both see the same
 * names. Undefined for a file that Git would not read, or that refers to another file. `hashBytes` is 20 for SHA-1,
 * and 32 for SHA-256.
 */
export function readGitIndex(bytes: Buffer, hashBytes: number): GitIndex | undefined {
  try {
    return read(bytes, hashBytes);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function read(bytes: Buffer, hashBytes: number): GitIndex | undefined {
  const version = bytes.readUInt32BE(4);
  if (bytes.toString("latin1", 0, 4) !== "DIRC" || version < 2 || version > 4) return undefined;
  const entries: Entry[] = [];
  let at = 12;
  for (let left = bytes.readUInt32BE(8); left > 0; left -= 1) {
    const flags = bytes.readUInt16BE(at + 40 + hashBytes);
    const isExtended = (flags & extendedFlag) !== 0;
    if (version === 2 && isExtended) return undefined;
    const nameAt = at + 42 + hashBytes + (isExtended ? 2 : 0);
    const start =
      version === 4 ? startOfName(bytes, nameAt, entries.at(-1)?.name) : { from: nameAt, kept: empty };
    if (start === undefined) return undefined;
    const { from, kept } = start;
    const end = bytes.indexOf(0, from);
    const length = kept.length + end - from;
    if (end === -1 || (flags & lengthMask) !== Math.min(length, lengthMask)) return undefined;
    const rest = bytes.subarray(from, end);
    entries.push({
      head: bytes.subarray(at, nameAt),
      mode: bytes.readUInt32BE(at + 24),
      stage: (flags >> 12) & 3,
      name: kept.length === 0 ? rest : Buffer.concat([kept, rest]),
    });
    at = version === 4 ? end + 1 : at + padded(nameAt - at + length);
    if (at > bytes.length - hashBytes) return undefined;
  }
  if (extensionNames(bytes, at, hashBytes).includes("link")) return undefined;
  return describe(entries);
}

function describe(entries: readonly Entry[]): GitIndex {
  const gitlinks = entries.filter(({ mode }) => mode === gitlinkMode);
  return {
    entries,
    gitlinks: new Set(gitlinks.map(({ name }) => name.toString("latin1"))),
    isSparse: entries.some(({ mode }) => mode === sparseMode),
  };
}

const empty = Buffer.alloc(0);
/** With one to eight zeros after the name. */
const padded = (length: number): number => (length + 8) & ~7;

/** Version 4 stores how many bytes of the previous name to drop, and the bytes that follow. */
function startOfName(
  bytes: Buffer,
  at: number,
  previous: Buffer = empty,
): { readonly from: number; readonly kept: Buffer } | undefined {
  let from = at;
  let byte = bytes.readUInt8(from);
  let dropped = byte & 127;
  while ((byte & 128) !== 0) {
    from += 1;
    byte = bytes.readUInt8(from);
    dropped = (dropped + 1) * 128 + (byte & 127);
    if (dropped > bytes.length) return undefined;
  }
  if (dropped > previous.length) return undefined;
  return { from: from + 1, kept: previous.subarray(0, previous.length - dropped) };
}

function extensionNames(bytes: Buffer, start: number, hashBytes: number): readonly string[] {
  const names: string[] = [];
  for (let at = start; at <= bytes.length - hashBytes - 8; at += 8 + bytes.readUInt32BE(at + 4))
    names.push(bytes.toString("latin1", at, at + 4));
  return names;
}

/** The same index without the gitlinks that `isKept` rejects. */
export function withoutGitlinks(index: GitIndex, isKept: (path: string) => boolean): GitIndex {
  const { entries } = index;
  return describe(
    entries.filter(({ mode, name }) => mode !== gitlinkMode || isKept(name.toString("latin1"))),
  );
}

/** The index `theirs` with what changed from `base` to `ours`. A name that changed in both is that of `theirs`. */
export function mergeIndexes(base: GitIndex, ours: GitIndex, theirs: GitIndex): GitIndex {
  const [before, after, merged] = [byKey(base), byKey(ours), byKey(theirs)];
  for (const key of new Set([...before.keys(), ...after.keys()])) {
    const [old, changed] = [before.get(key), after.get(key)];
    if (isSame(old, changed) || !isSame(old, merged.get(key))) continue;
    if (changed === undefined) merged.delete(key);
    else merged.set(key, changed);
  }
  return describe([...merged].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, entry]) => entry));
}

const hashBytesOf = ({ head }: Entry): number => (head.length < 72 ? 20 : 32);

/** By name and then stage, which is also Git's order. */
function byKey({ entries }: GitIndex): Map<string, Entry> {
  return new Map(entries.map((entry) => [`${entry.name.toString("latin1")}\0${entry.stage}`, entry]));
}

/** Whether two entries have the same mode and object; the times of files do not matter. */
function isSame(one: Entry | undefined, other: Entry | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  const end = 40 + hashBytesOf(one);
  return one.mode === other.mode && one.head.subarray(40, end).equals(other.head.subarray(40, end));
}

/**
 * The same index with no state of files that a command wrote. An entry with the mode and object of an entry in `known` becomes that one;
 * others lose their times and sizes, so that Git compares the files. Otherwise an index could hide a changed file. The new marks
 * "assume unchanged" and "skip worktree" are removed, and their names are in `marked`; in a sparse checkout, entries keep the second one.
 */
export function withStatesOf(
  index: GitIndex,
  known: GitIndex | undefined,
  isSparseCheckout: boolean,
): { readonly index: GitIndex; readonly marked: readonly string[] } {
  const before = byKey(known ?? describe([]));
  const marked = new Set<string>();
  const entries = [...byKey(index)].map(([key, entry]) => {
    const old = before.get(key);
    const oldMarks = old === undefined ? noMarks : marksOf(old);
    const marks = marksOf(entry);
    const isSkipped = oldMarks.isSkipped || isSparseCheckout || entry.mode === sparseMode;
    if ((marks.isAssumed && !oldMarks.isAssumed) || (marks.isSkipped && !isSkipped))
      marked.add(entry.name.toString("latin1"));
    if (old !== undefined && isSame(old, entry)) return old;
    const head = Buffer.from(entry.head);
    head.fill(0, 0, 24).fill(0, 28, 40);
    const at = 40 + hashBytesOf(entry);
    if (!oldMarks.isAssumed) head.writeUInt16BE(head.readUInt16BE(at) & ~assumedFlag, at);
    if (marks.isSkipped && !isSkipped) head.writeUInt16BE(head.readUInt16BE(at + 2) & ~skippedFlag, at + 2);
    return { ...entry, head };
  });
  return { index: describe(entries), marked: [...marked] };
}

const noMarks = { isAssumed: false, isSkipped: false };

/** The marks by which Git does not look at the file of an entry. */
function marksOf(entry: Entry): typeof noMarks {
  const at = 40 + hashBytesOf(entry);
  const flags = entry.head.readUInt16BE(at);
  const isExtended = (flags & extendedFlag) !== 0;
  return {
    isAssumed: (flags & assumedFlag) !== 0,
    isSkipped: isExtended && (entry.head.readUInt16BE(at + 2) & skippedFlag) !== 0,
  };
}

/** Writes no extensions, because Git would read entries and trees from them that kit has not checked. */
export function writeGitIndex({ entries, isSparse }: GitIndex, hashBytes: number): Buffer {
  const header = Buffer.from("DIRC\0\0\0\x03\0\0\0\0", "latin1");
  header.writeUInt32BE(entries.length, 8);
  const parts: Buffer[] = [header];
  for (const { head, name } of entries) {
    const length = head.length + name.length;
    parts.push(head, name, zeros.subarray(0, padded(length) - length));
  }
  // Without this extension, Git does not accept entries of folders.
  if (isSparse) parts.push(Buffer.from("sdir\0\0\0\0", "latin1"));
  const body = Buffer.concat(parts);
  return Buffer.concat([
    body,
    createHash(hashBytes === 20 ? "sha1" : "sha256")
      .update(body)
      .digest(),
  ]);
}

const zeros = Buffer.alloc(8);
