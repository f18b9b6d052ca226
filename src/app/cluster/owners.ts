import type { EngineCluster } from "../../engine/cluster.ts";
import type { Engine } from "../../engine/contract.ts";
import type { InstanceKey } from "../../protocol/session-name.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { type FullStore, toFullStore } from "../../stores/full-store.ts";
import type { RunStores } from "../runtime/run-workflow.ts";
import type { CallName, NodeCalls } from "./node-calls.ts";
import type { ServiceCluster } from "./service-cluster.ts";

/** The owners of instances and runs, on this machine and others. The owner of an instance answers the calls for it. */
export type Owners = Pick<
  ServiceCluster,
  | "events"
  | "serve"
  | "streamAnswers"
  | "prompt"
  | "ask"
  | "read"
  | "atWork"
  | "isAttached"
  | "isOwn"
  | "close"
> & {
  /** The fence under which this node owns an instance: 0 if it does not, and undefined if no other node could. */
  fence(owned: Parameters<ServiceCluster["fence"]>[0]): number | undefined;
};

/** One machine: this process owns everything. */
export class SoleOwner implements Owners {
  readonly events: Engine["events"];
  readonly streamAnswers = {} as Owners["streamAnswers"];
  #local = {} as NodeCalls;

  constructor(events: Engine["events"]) {
    this.events = events;
  }

  serve(local: NodeCalls): void {
    this.#local = local;
  }

  prompt: Owners["prompt"] = (
    request,
    { signal = new AbortController().signal, onStart = ignore, onEvent },
  ) =>
    this.#local.prompt(
      { ...request, hasReader: onEvent !== undefined },
      { signal, onStart, onEvent: onEvent ?? ignore, deliver: async () => undefined },
    );

  ask: Owners["ask"] = (name, request) => this.#answer(name, request);
  read: Owners["read"] = (name, request) => this.#answer(name, request);
  atWork: Owners["atWork"] = () => this.#local.atWork({});
  isAttached: Owners["isAttached"] = async () => false;
  isOwn: Owners["isOwn"] = async () => true;
  fence: Owners["fence"] = () => undefined;
  close: Owners["close"] = () => undefined;

  #answer(name: CallName, request: unknown): Promise<never> {
    const answer = this.#local[name] as (request: unknown) => Promise<never>;
    return answer(request);
  }
}

function ignore(): void {}

/** Keeps processes out of the stores that do not own an instance or a run any more. */
export interface Fences extends RunStores {
  /** The service's store, for instances. */
  readonly store: FullStore;
  /** The fence under which this process has taken an instance over; undefined before its first input. */
  fenceOf(instance: InstanceKey): number | undefined;
  /** The fence that a write for an instance names; undefined if the store checks none. */
  writeFence(instance: InstanceKey): number | undefined;
  /** Returns an agent's own store for instances. */
  guard(store: SessionStore): SessionStore;
  /** Takes an instance over under a fence for an input, until `endInput`. Returns `fenceOf`. */
  takeOver(instance: InstanceKey, fence: number): Promise<number | undefined>;
  endInput(instance: InstanceKey): void;
}

/** One machine: the lease of its engine keeps other processes out, so its stores check no fences. */
export class SoleFence implements Fences {
  readonly store: FullStore;
  readonly #isDurable: boolean;
  #fence: number | undefined;

  constructor(store: SessionStore, { durable }: Engine["capabilities"]) {
    this.store = toFullStore(store);
    this.#isDurable = durable;
  }

  /** The newest fence, for all instances. No other process works for an engine that is not durable. */
  fenceOf: Fences["fenceOf"] = () => this.#fence;
  writeFence: Fences["writeFence"] = () => undefined;
  guard: Fences["guard"] = (store) => store;
  forRun: Fences["forRun"] = () => undefined;
  forgetRun: Fences["forgetRun"] = ignore;
  endInput: Fences["endInput"] = ignore;

  async takeOver(_instance: InstanceKey, fence: number): Promise<number | undefined> {
    if (this.#isDurable) this.#fence = fence;
    return this.#fence;
  }
}

/** The nodes of an engine; none if one machine does all work. */
export function nodesOf({
  cluster,
}: Pick<Engine, "cluster">): Pick<EngineCluster, "nodes" | "declareSchedules"> {
  return cluster ?? noOthers;
}

const noOthers = { nodes: async () => [], declareSchedules: async () => new Set<string>() };
