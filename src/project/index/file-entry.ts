/** What the index keeps of one source file, ready to be written and to be sent to another thread. */
export interface FileEntry {
  readonly path: string;
  /** SHA-256 of the bytes, base64url; empty for what could not be read. */
  readonly hash: string;
  /** JSON of the file's `GuidelineRecord`s; empty for none. */
  readonly guidelines: string;
  readonly guidelineCount: number;
  /** JSON of the file's diagnostics; empty for none. */
  readonly diagnostics: string;
  readonly blocks: readonly BlockEntry[];
  readonly features: readonly string[];
}

/** A block in the order of its file. */
export interface BlockEntry {
  readonly classCode: number;
  readonly kind: number;
  readonly base: string;
  readonly title: string;
  readonly content: string;
  /** The summary, where the content does not hold its words; else empty. */
  readonly summary: string;
  readonly tags: readonly string[];
  /** All the rest, as `packBlock` gives it, but for the edges. */
  readonly data: string;
  /** As `packEdges` gives them. */
  readonly edges: string;
  /** Targets of the table `refs`. */
  readonly refs: readonly string[];
}
