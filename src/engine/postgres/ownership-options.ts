import type { KitError } from "../../base/kit-error.ts";
import type { DatabaseClock, EngineDatabase } from "./engine-database.ts";

/** The parts of a node that `Ownership` uses, and the callbacks for its changes. */
export interface OwnershipOptions {
  readonly database: EngineDatabase;
  readonly clock: DatabaseClock;
  /** The version of kit, for operators. */
  readonly version: string;
  /**
   * `share`: the node takes an equal share of all shards. `asked`: it takes requested shards (`want`), and releases them when
   * they rest; for processes that live as long as a request. `called`: the same for nodes that an executor calls, which
   * release shards above an equal share.
   */
  readonly takes: "share" | "asked" | "called";
  /** The name of the project, for operators: nodes of two projects do not belong together. */
  readonly project: string | undefined;
  /** Milliseconds since this node got a notification, including its own; `undefined` before the first one was sent. */
  newsAgeMs(): number | undefined;
  /** The reason that this node gets no work, for operators. */
  problem(): KitError | undefined;
  /** Notifies the other nodes that shards are free. */
  announceFree(): void;
  /** Takes over the work of shards that this node has gained. The callback itself retries after a failure. */
  onGained(shards: readonly number[]): Promise<void>;
  /** Called after this node has lost shards; their signals have fired. */
  onLost(shards: ReadonlySet<number>): void;
  /** Whether a shard can be handed to another node now, because none of its work is running. */
  isIdle(shard: number): boolean;
  /** Called before idle shards are handed over; flushes the events of their streams. */
  beforeRelease(shards: readonly number[]): Promise<void>;
}
