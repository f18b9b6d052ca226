import type { KitError } from "../../base/kit-error.ts";
import type { DatabaseClock, EngineDatabase } from "./engine-database.ts";

/** The parts of a node that its ownership of shards works with, and the ones that follow it. */
export interface OwnershipOptions {
  readonly database: EngineDatabase;
  readonly clock: DatabaseClock;
  /** The version of kit, for operators. */
  readonly version: string;
  /**
   * `share`: the node takes an equal share of all shards. `asked`: it takes those that it is asked for (`want`), and gives them up
   * when they rest; for processes that live as long as a request. `called`: the same for nodes that an executor calls, which leave
   * those above an equal share to others.
   */
  readonly takes: "share" | "asked" | "called";
  /** The name of the project, for operators: nodes of two projects do not belong together. */
  readonly project: string | undefined;
  /** For how long this node has heard no notification, its own ones included, in ms; undefined where none was sent yet. */
  newsAgeMs(): number | undefined;
  /** The reason that this node gets no work, for operators. */
  problem(): KitError | undefined;
  /** Tells the other nodes that shards are free. */
  announceFree(): void;
  /** Shards have become this node's: their work is to be taken up. Where that fails it is tried again without a further call. */
  onGained(shards: readonly number[]): Promise<void>;
  /** Shards are no longer this node's: their signals have fired. */
  onLost(shards: ReadonlySet<number>): void;
  /** Whether a shard may be handed to another node now: nothing of it is at work. */
  isIdle(shard: number): boolean;
  /** Called before idle shards are handed over: what was appended to their streams has to be written. */
  beforeRelease(shards: readonly number[]): Promise<void>;
}
