import type { IndexingProgress } from "../../protocol/indexing.ts";
import type { Candidate } from "../scan/look-at-folder.ts";

/** The sources that a pass has to read, in the order in which it reads them. */
export class SourceQueue {
  readonly #rest: Candidate[];
  readonly #urgent: Candidate[] = [];

  private constructor(rest: Candidate[]) {
    this.#rest = rest;
  }

  /** Guideline files come first: there are few of them, and what an agent does depends on them. */
  static *create(
    candidates: readonly Candidate[],
    isGuidelineFile: (path: string) => boolean,
  ): Generator<undefined, SourceQueue> {
    const guidelines: Candidate[] = [];
    const others: Candidate[] = [];
    for (const candidate of candidates) {
      (isGuidelineFile(candidate.path) ? guidelines : others).push(candidate);
      yield;
    }
    // Taken from the end.
    return new SourceQueue([...guidelines, ...others].reverse());
  }

  /** Puts the sources of these paths before all others. */
  putFirst(isWanted: (path: string) => boolean): void {
    const kept = this.#rest.filter((candidate) => {
      if (!isWanted(candidate.path)) return true;
      this.#urgent.push(candidate);
      return false;
    });
    this.#rest.splice(0, this.#rest.length, ...kept);
  }

  get hasUrgent(): boolean {
    return this.#urgent.length > 0;
  }

  next(): Candidate | undefined {
    return this.#urgent.pop() ?? this.#rest.pop();
  }
}

/** A reader that waits for what may apply to a file. */
export interface WaitingReader {
  /** Names of the file, project-relative. */
  readonly file: string;
  readonly resolve: () => void;
}

/** How far the pass of this process has come, and who waits for a part of it. */
export class IndexingState {
  /** Set while an answer may lack what is not read yet. */
  progress: IndexingProgress | undefined = { done: 0, total: 0 };
  #waiting: WaitingReader[] = [];

  /** Resolves once all that may apply to a file can be read. */
  async wait(file: string): Promise<void> {
    if (this.progress === undefined) return;
    await new Promise<void>((resolve) => this.#waiting.push({ file, resolve }));
  }

  takeWaiting(): readonly WaitingReader[] {
    return this.#waiting.splice(0);
  }

  /** The pass is over, however it ended. */
  end(): void {
    this.progress = undefined;
    for (const { resolve } of this.takeWaiting()) resolve();
  }
}

/**
 * Whether what a file says may apply to another one by where it lies: next to it or above it, in folders of
 * tools (`.cursor/rules`) too.
 */
export function liesOnTheWay(path: string, file: string): boolean {
  const parts = path.split("/");
  const folders = parts.slice(0, -1);
  const toolFolder = folders.findIndex((name) => name.startsWith("."));
  const owner = (toolFolder === -1 ? folders : folders.slice(0, toolFolder)).join("/");
  return owner === "" || file.startsWith(`${owner}/`);
}
