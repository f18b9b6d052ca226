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

/** A block in the order of its file: what its row and its words are made from. */
export interface BlockEntry {
  readonly classCode: number;
  readonly kind: number;
  readonly base: string;
  readonly title: string;
  readonly content: string;
  /** All the rest, as `packBlock` gives it, but for the edges. */
  readonly data: string;
  /** Of title, content and data. */
  readonly checksum: number;
  /** As `packEdges` gives them. */
  readonly edges: string;
  readonly edgesChecksum: number;
  /** What is searched in place of title and content; empty where that is the same. */
  readonly searchTitle: string;
  readonly searchBody: string;
  readonly tags: string;
  readonly marks: string;
  /** Targets of the table `refs`. */
  readonly refs: readonly string[];
}
