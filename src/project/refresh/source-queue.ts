import type { IndexingProgress } from "../../protocol/indexing.ts";
import type { Candidate } from "../scan/read-folder.ts";

/** The sources that a pass reads, in the order in which it reads them. */
export class SourceQueue {
  readonly #rest: Candidate[];
  readonly #urgent: Candidate[] = [];

  private constructor(rest: Candidate[]) {
    this.#rest = rest;
  }

  /** Guideline files come first: there are few of them, and what an agent does depends on them. `turn` may pause. */
  static async create(
    candidates: readonly Candidate[],
    isGuidelineFile: (path: string) => boolean,
    turn: () => Promise<void>,
  ): Promise<SourceQueue> {
    const guidelines: Candidate[] = [];
    const others: Candidate[] = [];
    for (const candidate of candidates) {
      (isGuidelineFile(candidate.path) ? guidelines : others).push(candidate);
      await turn();
    }
    // `next` takes from the end.
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

/** A reader that waits for the guidelines of a file. */
export interface WaitingReader {
  /** Names of the file, project-relative. */
  readonly file: string;
  readonly resolve: () => void;
}

/** The progress of the pass of this process, and the readers that wait for a part of it. */
export class IndexingState {
  /** Set while answers may lack files that are not read yet. */
  progress: IndexingProgress | undefined = { done: 0, total: 0 };
  #waiting: WaitingReader[] = [];

  /** Resolves once the index has all guidelines that may apply to a file. */
  async wait(file: string): Promise<void> {
    if (this.progress === undefined) return;
    await new Promise<void>((resolve) => this.#waiting.push({ file, resolve }));
  }

  takeWaiting(): readonly WaitingReader[] {
    return this.#waiting.splice(0);
  }

  /** Ends the pass, failed or not, and releases its readers. */
  end(): void {
    this.progress = undefined;
    for (const { resolve } of this.takeWaiting()) resolve();
  }
}

/** Whether the rules in `path` may apply to `file`: they lie beside it or above it, or there in a tool's folder (`.cursor/rules`). */
export function liesOnTheWay(path: string, file: string): boolean {
  const parts = path.split("/");
  const folders = parts.slice(0, -1);
  const toolFolder = folders.findIndex((name) => name.startsWith("."));
  const owner = (toolFolder === -1 ? folders : folders.slice(0, toolFolder)).join("/");
  return owner === "" || file.startsWith(`${owner}/`);
}
