import { createHash } from "node:crypto";
import { renameSync } from "node:fs";
import { createIgnoreScope } from "../files/ignore-scope.ts";
import { loadOuterRules } from "../files/outer-rules.ts";
import { fillIndex } from "./fill-index.ts";
import { type BuildTarget, createDirectTarget } from "./index/build-target.ts";
import { isDamage } from "./index/damaged-index-error.ts";
import { removeDatabase } from "./index/index-build.ts";
import { makeIndexFolder } from "./index/open-index.ts";
import { seal } from "./index/seal.ts";
import { createThreadedTarget } from "./index/threaded-target.ts";
import { beginExclusive, openLock } from "./index/transaction.ts";
import type { IndexSession } from "./index-session.ts";
import type { PassSteps } from "./pass-steps.ts";
import type { IndexRefreshOptions } from "./project-index.ts";
import type { SourceCatalog } from "./read/source-catalog.ts";
import type { SourceReader } from "./read/source-reader.ts";
import { type UpdateResult, updateIndex } from "./update-index.ts";

export interface IndexPassesOptions {
  /** Absolute, with links resolved. */
  readonly root: string;
  /** Absolute path of the database. */
  readonly file: string;
  readonly fingerprint: string;
  readonly catalog: SourceCatalog;
  readonly readSource: SourceReader;
  readonly readText: (path: string) => string | undefined;
  readonly session: () => IndexSession;
}

export interface PassCounts {
  readonly parsed: number;
  readonly removed: number;
}

/** The work that keeps an index in line with the disk. */
export interface IndexPasses {
  /** Brings the index up to date; makes it first where there is none that can be used. */
  refresh(options: IndexRefreshOptions): PassSteps<PassCounts>;
  /** Makes the index on this thread, and opens it; its steps never wait for a promise. */
  make(): PassSteps<void>;
}

/** So many sources are worth the start of a thread. */
const manySources = 300;
const maxAttempts = 20;

export function createIndexPasses(options: IndexPassesOptions): IndexPasses {
  const { root, file, fingerprint, catalog, readSource, readText } = options;

  const rules = () => {
    const outer = loadOuterRules(root);
    return {
      scope: createIgnoreScope({ outer, readText: (path) => readText(path) ?? "" }),
      outerRules: createHash("sha256").update(JSON.stringify(outer)).digest("base64url"),
    };
  };

  /**
   * Makes the index while other processes wait. Returns how many files were read; undefined when
   * another process was first.
   */
  const make = function* (
    createTarget: (temporary: string) => BuildTarget,
    onProgress: IndexRefreshOptions["onProgress"],
  ): PassSteps<number | undefined> {
    const session = options.session();
    makeIndexFolder(file);
    const lock = openLock(file);
    try {
      yield* beginExclusive(lock);
      if (session.open()) {
        // Another process has made it, or was just about to seal it.
        session.takeReason();
        return undefined;
      }
      const temporary = `${file}.new`;
      const files = yield* fillIndex({
        root,
        catalog,
        readSource,
        ...rules(),
        fingerprint,
        openTarget: (sources) => (sources < manySources ? createDirectTarget : createTarget)(temporary),
        ...(onProgress && { onProgress }),
      });
      removeDatabase(file);
      renameSync(temporary, file);
      seal(file);
      if (!session.open()) throw new Error("A new index cannot be opened.");
      return files;
    } finally {
      lock.close();
    }
  };

  const updateOnce = function* (refresh: IndexRefreshOptions): PassSteps<UpdateResult> {
    const session = options.session();
    try {
      return yield* updateIndex({ root, catalog, readSource, ...rules(), ...session.forPass(), ...refresh });
    } catch (error) {
      // The tree in memory may be ahead of what was committed. Damage is for the caller to handle.
      if (!isDamage(error)) session.drop(undefined);
      throw error;
    }
  };

  const update = function* (refresh: IndexRefreshOptions): PassSteps<PassCounts> {
    const session = options.session();
    for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
      const result = yield* updateOnce(refresh);
      if (result.kind === "outdated") continue;
      session.committed(result.generation);
      return result;
    }
    throw new Error("Other processes write the index faster than it can be read.");
  };

  return {
    *refresh(refresh) {
      const session = options.session();
      if (!session.isCurrent()) session.drop(undefined);
      if (!session.isOpen() && !session.open()) {
        const parsed = yield* make(createThreadedTarget, refresh.onProgress);
        if (parsed !== undefined) return { parsed, removed: 0 };
      }
      return yield* update(refresh);
    },
    *make() {
      yield* make(createDirectTarget, undefined);
    },
  };
}
