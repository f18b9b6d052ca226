import type { Sandbox, WorkspaceLocation } from "../sandboxes/contract.ts";
import type { MaybePromise } from "../stores/contract.ts";
import type { AnyTool } from "./define/tool.ts";

/** A guideline as the model is shown it. */
export interface ShownGuideline {
  readonly id: string;
  readonly title: string;
  readonly content: string;
  readonly source_file: string;
  /** Where it begins in that file, from 1. */
  readonly line?: number | undefined;
  /** Other names of that file. */
  readonly aliases?: readonly string[] | undefined;
}

/** Project instructions for the system prompt. */
export interface ProjectInstructions {
  /** Empty for none. */
  readonly text: string;
  /** The files whose whole text stands there: their guidelines need not be shown once more. */
  readonly sources: ReadonlySet<string>;
  /** Each file that the text has something of, with about how many tokens. */
  readonly files: readonly { readonly path: string; readonly tokens: number }[];
}

/** Where a session works, as far as it is known before it does. */
export interface Workplace {
  /** The working folder, relative to the workspace; "" for its root. */
  readonly cwd: string;
  /** Absent where only the sandbox can read its workspace. */
  readonly location?: WorkspaceLocation | undefined;
  /** Given where there is no location; undefined where it cannot be opened. */
  readonly sandbox?: Pick<Sandbox, "readFile"> | undefined;
}

/**
 * What the repositories say that agents work in. The composition root makes it of specs and guidelines;
 * agents know neither.
 */
export interface ProjectContext {
  /** The repository that a workspace belongs to: that of the agents themselves, or another one. */
  repositoryAt(place: Workplace): Repository;
  /** `spec_search`, `spec_impact`, `guidelines_for` of the agents' own repository. */
  readonly tools: readonly AnyTool[];
}

/** A repository as a session in it sees it. */
export interface Repository {
  /** The working folder, relative to the root of the repository; "" for the root. */
  readonly workingFolder: string;
  /** The same tools, about this repository; undefined for one that kit cannot index. */
  readonly tools: readonly AnyTool[] | undefined;
  /** AGENTS.md and CLAUDE.md of the repository and of the folders down to the working folder, as they are now. */
  instructions(): MaybePromise<ProjectInstructions>;
  /** The guidelines that apply to a workspace path, in the order in which they are to be read. */
  guidelinesFor(path: string): Promise<readonly ShownGuideline[]>;
  /** What a workspace path is where it holds specs or guidelines; undefined for any other file. */
  sourceAt(path: string): Promise<{ readonly kind: "spec" | "guideline"; readonly file: string } | undefined>;
}

/** A working folder that is named from another one; the workspace's root for what leads out of it. */
export function folderAt({ location, cwd }: Workplace, named: string): string {
  const root = location?.folder ?? "";
  const isBelow = named.startsWith(`${root}/`);
  // An absolute path is taken where it lies in the workspace, as sandboxes take it.
  if (named.startsWith("/") && named !== root && !isBelow) return "";
  const segments = named.startsWith("/") ? [] : cwd.split("/");
  for (const segment of (named.startsWith("/") ? named.slice(root.length) : named).split("/")) {
    if (segment === "..") {
      if (segments.pop() === undefined) return "";
    } else if (segment !== ".") segments.push(segment);
  }
  return segments.filter((segment) => segment !== "").join("/");
}

/** To whom a change of files is put down. */
export interface Writer {
  readonly agent: string;
  readonly instance_id: string;
  readonly session: string;
  readonly tool: string;
}

/** Keeps what models write apart from what the process runs. Paths are absolute, of this machine. */
export interface SourceGuard {
  /**
   * Whether the process has loaded a file, or would load one of that name in its place; with `removes`, also
   * a file below that folder.
   */
  isLoaded(file: string, removes: boolean): boolean;
  /**
   * The paths of a workspace, from its root, that commands leave as they are: what is protected and there, but for
   * what is granted. Without a folder of this machine, what may be there.
   */
  kept(hostRoot: string | undefined, granted: readonly string[]): readonly string[];
  /** A model has written a file: it is not loaded before a person accepts it. */
  wrote(file: string, writer: Writer): void;
  /** A model has written a file, and a person had looked at it before. */
  accepted(file: string): void;
  /** What a model asked for runs now, and may write any file until the function is called that this returns. */
  begin(writer: Writer): () => void;
}
