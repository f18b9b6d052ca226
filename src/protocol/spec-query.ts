import type { IndexingProgress } from "./indexing.ts";
import type { Framework, Lifecycle, Priority, SpecBlock, SpecType } from "./spec-block.ts";

/** Filters combine with AND. Without `lifecycle`, obsolete blocks are left out. */
export interface SpecQuery {
  readonly q?: string;
  readonly framework?: Framework;
  readonly spec_type?: SpecType;
  readonly lifecycle?: Lifecycle;
  readonly priority?: Priority;
  readonly tag?: string;
  /**
   * The rules of instruction files, constraints of `fw_b` and `fw_c`. Lists of other specs leave them out unless this
   * is true, or a search or filter finds them.
   */
  readonly rules?: boolean;
  /** A project-relative path (exact), a folder (its subtree) or a glob. */
  readonly path?: string;
  /** Blocks per page, 1 to 1,000; default 50. */
  readonly limit?: number;
  /** `next_cursor` of the page before. */
  readonly cursor?: string;
}

export interface SpecPage {
  readonly specs: readonly SpecBlock[];
  /** Of the whole match, not of the page; so are the counts. */
  readonly total_count: number;
  readonly counts_by_framework: Readonly<Record<string, number>>;
  /** Rules of instruction files that a list leaves out; absent where it leaves out none. */
  readonly rules_left_out?: number;
  readonly indexing?: IndexingProgress;
  readonly next_cursor?: string;
}

export interface ImpactRequest {
  /** Changed files, project-relative. */
  readonly files?: readonly string[];
  readonly ids?: readonly string[];
  /** How many edges to follow, 1 to 5; default 2. */
  readonly depth?: number;
  /** Also obsolete blocks, which tell what was. */
  readonly include_obsolete?: boolean;
  /** Also, one by one, the blocks that only lie in the same feature as an affected one. */
  readonly expand_features?: boolean;
  /** Affected blocks per page, 1 to 1,000; default 50. */
  readonly limit?: number;
  /** `next_cursor` of the page before. */
  readonly cursor?: string;
}

/** One step from a changed thing to an affected one. */
export interface ImpactEdge {
  readonly from: string;
  readonly to: string;
  readonly kind: SpecEdgeKind;
}

export const specEdgeKinds = [
  "defines",
  "code_ref",
  "test_ref",
  "related",
  "implements",
  "validates",
  "same_feature",
] as const;
export type SpecEdgeKind = (typeof specEdgeKinds)[number];

export interface AffectedSpec {
  readonly id: string;
  /** 0 to 1: the product of the weights of the edges that led here. */
  readonly score: number;
  readonly path: readonly ImpactEdge[];
}

/** Blocks that lie in the same feature as an affected one, and have no other link to the change. */
export interface SameFeature {
  /** The folder or file that the feature is specified in. */
  readonly feature: string;
  readonly specs: number;
}

export interface Impact {
  /** One page, highest score first. */
  readonly affected: readonly AffectedSpec[];
  /** Describes the whole answer, not the page; so does every field below. */
  readonly total_count: number;
  /** What is folded; empty with `expand_features`. Most first. */
  readonly same_feature: readonly SameFeature[];
  /** Obsolete blocks that are left out. */
  readonly obsolete_count: number;
  readonly next_cursor?: string;
  /** Project-relative test files to run. */
  readonly tests: readonly string[];
  /** Project-relative files that the affected blocks lie in or name. */
  readonly files: readonly string[];
  readonly indexing?: IndexingProgress;
}

export interface SpecGraph {
  readonly nodes: readonly {
    readonly id: string;
    readonly kind: "spec" | "file" | "test";
    readonly title: string;
  }[];
  readonly edges: readonly ImpactEdge[];
  readonly indexing?: IndexingProgress;
}
