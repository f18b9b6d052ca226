import { KitError } from "../base/kit-error.ts";
import type { ApprovalDecision, ApprovalRequest } from "../protocol/approval.ts";
import type { SessionKey } from "../protocol/session-entry.ts";

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
  readonly waitingCalls: WaitingCalls;
}

/** Selects the calls whose fields equal all fields of the filter. */
export type CallFilter = { readonly [Key in keyof SessionKey]?: SessionKey[Key] | undefined };

/** Tool calls that wait for a decision on any node. */
export interface WaitingCalls {
  /** Keeps a call that this node no longer waits for, for the node that resumes the work. Meanwhile the call can be listed and decided. */
  leave(approvalId: string): Promise<void>;
  /** Stores a call that begins to wait on this node. Returns the decision if one was made while an earlier node waited. */
  add(request: ApprovalRequest): Promise<ApprovalDecision | undefined>;
  /** Removes a call that this node has waited for. Returns the decision if one was made meanwhile. */
  remove(approvalId: string): Promise<ApprovalDecision | undefined>;
  /** Removes a call that no longer waits. A decision that was made meanwhile is kept for the next `add` of the call. */
  withdraw(approvalId: string): Promise<void>;
  /** False if no waiting call has this id and these fields. */
  decide(approvalId: string, decision: ApprovalDecision, within: CallFilter): Promise<boolean>;
  /** The calls of live nodes, oldest first. */
  list(within: CallFilter): Promise<readonly ApprovalRequest[]>;
  /** Calls the listener with each decision about a call of this node. */
  onDecided(listener: (approvalId: string, decision: ApprovalDecision) => void): void;
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
