import type { Diagnostic } from "../protocol/diagnostic.ts";
import type { Framework, SourceSpan, SpecBlock, SpecMetadata } from "../protocol/spec-block.ts";
import type { FrontMatterKeys } from "./markdown/front-matter.ts";

/** The file that an adapter reads: decoded, without its byte order mark, otherwise unchanged. */
export interface SpecSource {
  /** POSIX, relative to the project root. */
  readonly path: string;
  readonly text: string;
}

/**
 * How a block gets its id once the whole project is known (`model/assemble-blocks.ts`).
 *
 * - `base`: the id that the adapter asks for; a collision gets `-2`, `-3`, … in path, then position order.
 * - `sequence`: `<prefix><n>`, n zero-based over all blocks of that prefix, in the same order.
 * - `declared`: the file declares the id; a second declaration is an error, and both blocks keep the id.
 */
export type DraftId =
  | { readonly kind: "base"; readonly value: string }
  | { readonly kind: "sequence"; readonly prefix: string }
  | { readonly kind: "declared"; readonly value: string };

/** An explicit reference to another block, as written; resolved when the project is known. */
export interface DraftLink {
  /** `implements`: a task names a requirement. `validates`: a design or test does. */
  readonly kind: "implements" | "validates" | "related";
  /** The base or declared id of the target. A block in the same folder takes precedence. */
  readonly target: string;
  /** The criterion it names inside the target, such as "1.2". */
  readonly criterion?: string;
  readonly line: number;
}

/** A path that a block mentions in inline code or in a link; kept when the file exists. */
export interface DraftMention {
  /** As written, without anchors (`#L10`) and line suffixes (`:10`). */
  readonly path: string;
  readonly line: number;
  /** Set where the format marks the kind of the path (`[@test]`, `targets`). */
  readonly role?: "code" | "test";
}

/** A spec block before the project around it is known. */
export interface SpecDraft extends Omit<SpecBlock, "id" | "path"> {
  readonly id: DraftId;
  /** Without `source`, and without `related_specs`, `code_refs` and `test_refs` that come from links. */
  readonly metadata: SpecMetadata;
  readonly span: SourceSpan;
  /** Documents of one feature share it; by convention the folder (`.kiro/specs/auth`). */
  readonly feature?: string;
  readonly links: readonly DraftLink[];
  readonly mentions: readonly DraftMention[];
  /**
   * Other ids by which links of the same folder can name this block, such as the id of a statement in it
   * (`fw_a-auth-requirements-nfr-1`). An alias that ends in `*` means all blocks that have it. Any other alias that several
   * blocks have means none of them.
   */
  readonly aliases?: readonly string[];
}

export interface ParsedSpecs {
  readonly drafts: readonly SpecDraft[];
  readonly diagnostics: readonly Diagnostic[];
}

/** The files that an export writes, and what the format cannot express, one sentence each. */
export interface WrittenSpecs {
  readonly files: readonly { readonly path: string; readonly content: string }[];
  readonly losses: readonly string[];
}

/**
 * One spec framework: text in, blocks and diagnostics out. Pure, and never throws on any text.
 *
 * The first adapter of the registry whose `matches` accepts a path reads the file.
 */
export interface SpecAdapter {
  /** Unique in a registry: "kiro", "openspec". */
  readonly name: string;
  readonly framework: Framework;
  /** The name of the tool, if it has no framework of its own: "OpenSpec". */
  readonly label?: string;
  /** Folders of specs, at any depth. The tool reads them from the disk, so kit reads them even if Git ignores them. */
  readonly folders?: readonly string[];
  /** The keys of the front matter that the tool reads; editors complete them. */
  readonly keys?: FrontMatterKeys;
  /** Decides by the path alone; cheap, because it is asked for every file of a repository. */
  matches(path: string): boolean;
  parse(source: SpecSource): ParsedSpecs;
  /** Renders blocks as files of the framework, so that reading them returns the same blocks. */
  write?(blocks: readonly SpecBlock[]): WrittenSpecs;
}
