import { KitError } from "../base/kit-error.ts";
import type { ApprovalDecision, ApprovalRequest } from "../protocol/approval.ts";
import type { SessionKey } from "../protocol/session-entry.ts";

/** One node at a time does the work of an agent's instance, or of a run. */
export type Owned = { readonly agent: string; readonly instance_id: string } | { readonly run_id: string };

/** A process that takes part in a cluster, and lives. */
export interface ClusterNode {
  readonly node: string;
  /** The name of its machine, for operators. */
  readonly host: string;
  /** Where other nodes reach it: `http://10.0.0.7:2024`. Undefined for a process that serves no HTTP. */
  readonly address: string | undefined;
}

/** The nodes of an engine that several machines share, as each of them sees them. */
export interface EngineCluster {
  /** This node. */
  readonly node: string;
  /** The time of the engine's own clock, on which all nodes agree; in ms since 1970. */
  now(): number;
  /** Whether this node does the work of it at this moment. Answers from memory. */
  owns(owned: Owned): boolean;
  /** The fence under which this node does the work of it; 0 where another one does. It rises with each change of owner. */
  fence(owned: Owned): number;
  /**
   * The node that does the work of it; undefined where none does for the moment. An answer may be a second old, unless it is to be
   * `fresh`: the node that is asked knows better.
   */
  owner(owned: Owned, options?: { readonly fresh?: boolean }): Promise<ClusterNode | undefined>;
  /** All nodes that live, this one included once it works. */
  nodes(): Promise<readonly ClusterNode[]>;
  /** Says where other nodes reach this one. */
  announce(address: string): Promise<void>;
  /**
   * Says which schedules the files of this node declare, and gives those that the files of the other nodes do; undefined where one of
   * them has not said so yet.
   */
  declareSchedules(names: readonly string[]): Promise<ReadonlySet<string> | undefined>;
  /** A secret that the nodes alone share: they sign by it what they ask each other. */
  secret(): Promise<string>;
  readonly waitingCalls: WaitingCalls;
}

/** Selects calls whose fields equal all given ones. */
export type CallFilter = { readonly [Key in keyof SessionKey]?: SessionKey[Key] | undefined };

/** Tool calls that wait for a decision on any node. */
export interface WaitingCalls {
  /** Keeps a call that this node waits for no more, for the node that takes its work up again; it is listed and decided meanwhile. */
  leave(approvalId: string): Promise<void>;
  /** Keeps a call that begins to wait on this node; gives the decision that was taken about it before, on a node that is gone. */
  add(request: ApprovalRequest): Promise<ApprovalDecision | undefined>;
  /** Forgets a call that this node has waited for; gives the decision that was taken about it meanwhile. */
  remove(approvalId: string): Promise<ApprovalDecision | undefined>;
  /** Forgets a call that waits no longer; a decision that was taken meanwhile stays for who asks again. */
  withdraw(approvalId: string): Promise<void>;
  /** False where no call waits that has this id and these fields. */
  decide(approvalId: string, decision: ApprovalDecision, within: CallFilter): Promise<boolean>;
  /** The calls of nodes that live, oldest first. */
  list(within: CallFilter): Promise<readonly ApprovalRequest[]>;
  /** Calls the listener with each decision about a call of this node. */
  onDecided(listener: (approvalId: string, decision: ApprovalDecision) => void): void;
}

/** For work that has not begun, and will not here: another node does it, or this one stops. Its caller may ask again. */
export class NotBegun extends KitError<"unavailable"> {
  constructor() {
    super({
      code: "unavailable",
      message: "The work is done by another process now, or this one is stopping. Try again.",
      meta: { retry_after_s: 1 },
    });
  }
}
