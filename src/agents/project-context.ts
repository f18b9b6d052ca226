import type { RepositoryState } from "../protocol/repository.ts";
import type { Sandbox, WorkspaceLocation } from "../sandboxes/contract.ts";
import type { MaybePromise } from "../stores/contract.ts";
import type { AnyTool } from "./define/tool.ts";

/** A guideline in the form that the model sees. */
export interface ShownGuideline {
  readonly id: string;
  /** Its id as a rule: `AGENTS.md#money`. */
  readonly rule: string;
  readonly title: string;
  readonly content: string;
  readonly source_file: string;
  /** First line in that file, from 1. */
  readonly line?: number | undefined;
  /** Other names of that file. */
  readonly aliases?: readonly string[] | undefined;
}

/** Project instructions for the system prompt. */
export interface ProjectInstructions {
  /** `""` if the project has no instructions. */
  readonly text: string;
  /** Files that the text contains in full: their guidelines are not shown again. */
  readonly sources: ReadonlySet<string>;
  /** The sections of the files, in the order of the text. */
  readonly parts: readonly InstructionPart[];
}

/** A section of an instruction file in the text of a prompt. */
export interface InstructionPart {
  /** `AGENTS.md#money`; the path of the file for what is before its first section. */
  readonly id: string;
  readonly path: string;
  /** First line in that file, from 1. */
  readonly line: number;
  /** Approximate. */
  readonly tokens: number;
  /** Offsets in the text. */
  readonly start: number;
  readonly end: number;
}

/** A rule of a repository, which a session can leave out. */
export interface KnownRule {
  /** `AGENTS.md#money`. */
  readonly id: string;
  readonly file: string;
  readonly guideline_id: string;
}

/** Where a session works, as far as it is known before the sandbox is open. */
export interface Workplace {
  /** The working folder, relative to the workspace; "" for its root. */
  readonly cwd: string;
  /** Undefined if only the sandbox can read its workspace. */
  readonly location?: WorkspaceLocation | undefined;
  /** Set without a location; undefined if the sandbox cannot be opened. */
  readonly sandbox?: Pick<Sandbox, "readFile"> | undefined;
}

/**
 * The repositories that agents work in. The composition root builds it from specs and guidelines, so that agents
 * depend on neither.
 */
export interface ProjectContext {
  /** The repository of a workspace: the one of the agents themselves, or another one. */
  repositoryAt(workplace: Workplace): Repository;
  /** The state of that repository, without a process; undefined outside of Git, and if only the sandbox can read the workspace. */
  stateAt(location: WorkspaceLocation | undefined): RepositoryState | undefined;
  /** `spec_search`, `spec_impact`, `guidelines_for` of the agents' own repository. */
  readonly tools: readonly AnyTool[];
}

/** A repository in the view of a session that works in it. */
export interface Repository {
  /** The working folder, relative to the root of the repository; "" for the root. */
  readonly workingFolder: string;
  /** The same tools, about this repository; undefined for one that kit cannot index. */
  readonly tools: readonly AnyTool[] | undefined;
  /** AGENTS.md and CLAUDE.md of the repository and of the folders down to the working folder, as they are now. */
  instructions(): MaybePromise<ProjectInstructions>;
  /** Every rule of the repository that its index knows. */
  rules(): Promise<readonly KnownRule[]>;
  /** The guidelines that apply to a workspace path, in reading order. */
  guidelinesFor(path: string): Promise<readonly ShownGuideline[]>;
  /** The spec or guideline source at a workspace path; undefined for any other file. */
  sourceAt(path: string): Promise<{ readonly kind: "spec" | "guideline"; readonly file: string } | undefined>;
}

/** Resolves a working folder against another one; the workspace's root for a path outside of it. */
export function folderAt({ location, cwd }: Workplace, folder: string): string {
  const root = location?.folder ?? "";
  const isBelow = folder.startsWith(`${root}/`);
  // An absolute path counts only inside the workspace, as in sandboxes.
  if (folder.startsWith("/") && folder !== root && !isBelow) return "";
  const segments = folder.startsWith("/") ? [] : cwd.split("/");
  for (const segment of (folder.startsWith("/") ? folder.slice(root.length) : folder).split("/")) {
    if (segment === "..") {
      if (segments.pop() === undefined) return "";
    } else if (segment !== ".") segments.push(segment);
  }
  return segments.filter((segment) => segment !== "").join("/");
}

/** The author of a change of files. */
export interface Writer {
  readonly agent: string;
  readonly instance_id: string;
  readonly session: string;
  readonly tool: string;
}

/** Keeps files that models write apart from files that the process loads. Paths are absolute, of this machine. */
export interface SourceGuard {
  /**
   * Whether the process has loaded a file, or would load one of that name in its place; with `removes`, also
   * a file below that folder.
   */
  isLoaded(file: string, removes: boolean): boolean;
  /**
   * The existing protected paths of a workspace, from its root, that commands must not change, except granted ones.
   * Without a folder of this machine, all paths that may exist.
   */
  kept(hostRoot: string | undefined, granted: readonly string[]): readonly string[];
  /** Records that a model has written a file, which is not loaded before a person accepts it. */
  wrote(file: string, writer: Writer): void;
  /** Records that a model has written a file after a person approved the change. */
  accepted(file: string): void;
  /** Marks that code on behalf of a model may write any file, until the returned function is called. */
  begin(writer: Writer): () => void;
}
