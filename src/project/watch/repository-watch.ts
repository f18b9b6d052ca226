import { lstatSync } from "node:fs";
import { attempt } from "../../base/attempt.ts";
import { decidingFiles, headCommitOf } from "../../files/git-repository.ts";
import type { RepositoryState } from "../../protocol/repository.ts";
import { readDirty } from "../scan/git/git-state.ts";

const noThrow = { throwIfNoEntry: false } as const;

/** The shortest time, in milliseconds, from a change to the question that it causes. */
const leastPauseMs = 200;
/** The most time that Git spends on these questions, as a share. */
const gitShare = 0.05;

/**
 * The state of a project's repository, for callers that must not start a process. The commit is that of the files of Git. Whether
 * files differ from it is known only while a watch reports changes: Git is asked in the background, and until it answers, nothing is known.
 */
export class RepositoryWatch {
  readonly #root: string;
  readonly #watches = new Set<object>();
  #commit: string | undefined;
  /** The files that name the commit, as they were when it was read. */
  #files: readonly { readonly path: string; readonly ino: number; readonly mtimeMs: number }[] = [];
  #answer: RepositoryState | undefined;
  #changes = 0;
  /** The value of `#changes` at the last question. */
  #asked = 0;
  #pauseMs = leastPauseMs;
  #timer: NodeJS.Timeout | undefined;
  #asking: { readonly abort: AbortController; readonly ended: Promise<void> } | undefined;

  constructor(root: string) {
    this.#root = root;
  }

  /** Undefined outside of a repository, before the first commit, and where only Git can tell. */
  current(): RepositoryState | undefined {
    if (!this.#isCommitCurrent()) this.#readCommit();
    const commit = this.#commit;
    if (commit === undefined) return undefined;
    return this.#answer?.commit === commit ? this.#answer : { commit };
  }

  /** Compares only the stamps of the few files that decide: every operation comes here. */
  #isCommitCurrent(): boolean {
    try {
      for (const { path, ino, mtimeMs } of this.#files) {
        const stats = lstatSync(path, noThrow);
        if ((stats?.ino ?? 0) !== ino || (stats?.mtimeMs ?? 0) !== mtimeMs) return false;
      }
      return this.#files.length > 0;
    } catch {
      return false;
    }
  }

  #readCommit(): void {
    this.#files = decidingFiles(this.#root).map((path) => {
      const stats = attempt(() => lstatSync(path, noThrow));
      return { path, ino: stats?.ino ?? 0, mtimeMs: stats?.mtimeMs ?? 0 };
    });
    this.#commit = headCommitOf(this.#root);
  }

  /** Begins to report changes; `changed` must be called after each one. */
  open(): { readonly changed: () => void; readonly close: () => Promise<void> } {
    const watch = {};
    this.#watches.add(watch);
    this.#changed();
    return {
      changed: () => this.#changed(),
      close: async () => {
        if (!this.#watches.delete(watch) || this.#watches.size > 0) return;
        this.#changed();
        clearTimeout(this.#timer);
        this.#timer = undefined;
        this.#asking?.abort.abort();
        await this.#asking?.ended;
      },
    };
  }

  #changed(): void {
    this.#changes += 1;
    this.#answer = undefined;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#asking !== undefined || this.#watches.size === 0) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const abort = new AbortController();
      const ended = this.#ask(abort.signal)
        .catch(() => undefined)
        .finally(() => {
          this.#asking = undefined;
          if (this.#asked !== this.#changes) this.#schedule();
        });
      this.#asking = { abort, ended };
    }, this.#pauseMs).unref();
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const [commit, began] = [this.#readCommit(), performance.now()];
    this.#asked = this.#changes;
    const dirty = commit === undefined ? undefined : await readDirty(this.#root, signal);
    this.#pauseMs = Math.max(leastPauseMs, (performance.now() - began) / gitShare);
    if (commit !== undefined && dirty !== undefined && this.#asked === this.#changes)
      this.#answer = { commit, dirty };
  }
}
