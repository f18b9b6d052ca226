import type { Aliases } from "./aliases.ts";
import type { FileEntry } from "./index/file-entry.ts";
import { parseSource } from "./read/parse-source.ts";
import type { SourceCatalog } from "./read/source-catalog.ts";
import type { SourceReader } from "./read/source-reader.ts";
import { setStamp } from "./tree/folder.ts";
import type { Candidate } from "./tree/look-at-folder.ts";

/** What the index holds of a file already. */
export interface KnownFile {
  readonly hash: string;
  readonly diagnostics: string;
}

export interface ReadCandidateOptions {
  readonly readSource: SourceReader;
  readonly catalog: SourceCatalog;
  readonly aliases: Pick<Aliases, "namesOf">;
  /** Absent for a file that is to be parsed although its bytes may be the same. */
  readonly known: KnownFile | undefined;
}

/** Reads a source and takes its stamp; parses it unless it is what the index holds already. */
export function readCandidate(
  candidate: Candidate,
  options: ReadCandidateOptions,
): FileEntry | "same" | "gone" {
  const { path, problem } = candidate;
  const { readSource, catalog, known } = options;
  const read = problem === undefined ? readSource(path) : ({ kind: "problem", diagnostic: problem } as const);
  if (read.kind === "gone") return "gone";
  if ("seen" in read && read.seen !== undefined) setStamp(candidate.folder, candidate.stampAt, read.seen);
  if (read.kind === "bytes" && known?.hash === read.hash) return "same";
  const entry = parseSource(path, { read, catalog, names: [path, ...options.aliases.namesOf(path)] });
  const isSameProblem =
    read.kind === "problem" && known?.hash === "" && known.diagnostics === entry.diagnostics;
  return isSameProblem ? "same" : entry;
}
