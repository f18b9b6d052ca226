import type { Diagnostic } from "../protocol/diagnostic.ts";
import type { SourceType } from "../protocol/guideline.ts";
import type { SourceSpan } from "../protocol/spec-block.ts";
import type { SyncFormat } from "../protocol/sync.ts";
import type { FrontMatterKeys } from "../specs/markdown/front-matter.ts";

/** The tool that defines what a source's patterns and scope mean. */
export type GuidelineTool =
  | "kiro"
  | "cursor"
  | "claude"
  | "agents"
  | "copilot"
  | "gemini"
  | "windsurf"
  | "cline"
  | "zed";

/** When the source's own tool would load a guideline. */
export type Inclusion = "always" | "pattern" | "auto" | "manual";

/** A guideline without its id, with the fields that matching and conversion need. */
export interface GuidelineDraft {
  readonly title: string;
  readonly content: string;
  readonly source_type: SourceType;
  readonly tool: GuidelineTool;
  readonly tags: readonly string[];
  readonly inclusion: Inclusion;
  /** Every declared glob, unquoted, in order; empty if there is none. */
  readonly globs: readonly string[];
  /** The folder that scope and globs are relative to: "" for the root, else "packages/api". */
  readonly scope: string;
  /** The parsed front matter of the whole file; `{}` if there is none. */
  readonly frontmatter: Readonly<Record<string, unknown>>;
  readonly span: SourceSpan;
  /** Imports (`@docs/rules.md`, `#[[file:x]]`) as written, outside code. */
  readonly imports: readonly { readonly path: string; readonly line: number }[];
  /** True for the whole of a file (steering, .mdc, rules), false for a section of one. */
  readonly whole_file: boolean;
  /** The slug of the heading of a section; absent for a whole file, and for the text before its first section. */
  readonly section?: string;
  /** The format that a sync wrote it from; absent for hand-written ones. */
  readonly managed?: SyncFormat;
}

export interface ParsedGuidelines {
  readonly drafts: readonly GuidelineDraft[];
  readonly diagnostics: readonly Diagnostic[];
}

/** One guideline format: text in, drafts and diagnostics out. Pure, and never throws on any text. */
export interface GuidelineAdapter {
  readonly name: string;
  readonly source_type: SourceType;
  /** Folders of rules, at any depth. The tool reads them from the disk, so kit reads them even if Git ignores them. */
  readonly folders?: readonly string[];
  /** The keys of the front matter that the tool reads in the files of `folders`. */
  readonly keys?: FrontMatterKeys;
  matches(path: string): boolean;
  parse(source: { readonly path: string; readonly text: string }): ParsedGuidelines;
}
