import { KitError } from "../base/kit-error.ts";

/** Names an agent's instance or a run. One node at a time owns it and does its work. */
export type Owned = { readonly agent: string; readonly instance_id: string } | { readonly run_id: string };

/** A live process of the cluster. */
export interface ClusterNode {
  readonly node: string;
  /** The name of the process's machine, for operators. */
  readonly host: string;
  /** The URL under which other nodes reach it: `http://10.0.0.7:2024`. `undefined` for a process that serves no HTTP. */
  readonly address: string | undefined;
}

/** The nodes of an engine that several machines share, from the view of one node. */
export interface EngineCluster {
  /** This node. */
  readonly node: string;
  /** The time of the engine's clock, which all nodes share; in ms since 1970. */
  now(): number;
  /** Whether this node owns the instance or run now. Answers from memory. */
  owns(owned: Owned): boolean;
  /** The fence under which this node owns it; 0 if another node does. The fence rises with each change of owner. */
  fence(owned: Owned): number;
  /**
   * The node that owns it; `undefined` if no node does for the moment. The answer can be a second old, unless `fresh` is
   * set: use `fresh` after the named node has refused the work.
   */
  owner(owned: Owned, options?: { readonly fresh?: boolean }): Promise<ClusterNode | undefined>;
  /** All live nodes; this node is included once it has started. */
  nodes(): Promise<readonly ClusterNode[]>;
  /** Publishes the URL under which other nodes reach this node. */
  announce(address: string): Promise<void>;
  /**
   * Publishes the names of the schedules that this node's files declare, and returns the names that other nodes have
   * published; `undefined` if a node has not published its names yet.
   */
  declareSchedules(names: readonly string[]): Promise<ReadonlySet<string> | undefined>;
  /** The secret that only the nodes share: they sign their requests to each other with it. */
  secret(): Promise<string>;
}

/** The error for work that did not begin, because another node owns it or this node is stopping. The caller can retry. */
export class NotBegun extends KitError<"unavailable"> {
  constructor() {
    super({
      code: "unavailable",
      message: "Another process does this work now, or this process is stopping. Try again.",
      meta: { retry_after_s: 1 },
    });
  }
}
