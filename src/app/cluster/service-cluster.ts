import { setTimeout } from "node:timers/promises";
import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import { type ClusterNode, type EngineCluster, NotBegun, type Owned } from "../../engine/cluster.ts";
import type { EventLog } from "../../engine/event-log-contract.ts";
import type { PromptReply } from "../../protocol/prompt.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { sessionName } from "../../protocol/session-name.ts";
import {
  type AnswerOf,
  type AskedBy,
  type CallListeners,
  type CallName,
  isCallName,
  type NodeCalls,
  ownedBy,
} from "./node-calls.ts";
import { isNotBegun, NodeClient, NodeLost, Unreached } from "./node-client.ts";
import { createSharedEvents, createStreamAnswers, type StreamAnswers } from "./shared-events.ts";
import { isSigned, type SignedCall, UsedSignatures } from "./signature.ts";

/** How long a call waits for an owner: a takeover from a frozen node takes three seconds. */
const ownerPatienceMs = 5_000;
/** The first delay between two attempts to find the owner. */
const pauseMs = 50;
/** How long lists wait for answers of other nodes. */
const listPatienceMs = 1_000;

export interface ServiceClusterOptions {
  readonly cluster: EngineCluster;
  readonly events: EventLog;
  /** The configured address at which other nodes reach this one. */
  readonly address?: string | undefined;
}

type Ask<Name extends CallName> = {
  readonly name: Name;
  readonly request: AskedBy<Name>;
  readonly signal?: AbortSignal | undefined;
};

type PromptListeners = {
  readonly [Name in "signal" | "onStart" | "onEvent"]?: CallListeners[Name] | undefined;
};

/** The service of one node of a cluster: it calls the node that owns an instance or a run. */
export class ServiceCluster {
  /** The event log, with events that other nodes have not yet written to the database. */
  readonly events: EventLog;
  /** Answers other nodes about the streams that this node writes. */
  readonly streamAnswers: StreamAnswers;
  readonly #cluster: EngineCluster;
  #address: string | undefined;
  readonly #client: NodeClient;
  readonly #usedSignatures = new UsedSignatures();
  /** The last prompt of each session that is being sent to another node. */
  readonly #onTheWay = new Map<string, Promise<void>>();
  #local: NodeCalls | undefined;

  constructor({ cluster, events, address }: ServiceClusterOptions) {
    this.#cluster = cluster;
    this.#address = address;
    this.#client = new NodeClient(cluster);
    this.events = createSharedEvents({ events, cluster, client: this.#client });
    this.streamAnswers = createStreamAnswers(events, cluster);
  }

  /** Sets the handlers of the calls that this node answers. */
  serve(local: NodeCalls): void {
    this.#local = local;
  }

  /** Announces the address of this node; the configured address takes precedence over that of its listener. */
  async announce(listening: string): Promise<void> {
    this.#address ??= listening;
    await this.#cluster.announce(this.#address);
  }

  /** The address at which other nodes reach this one. */
  get address(): string | undefined {
    return this.#address;
  }

  /** Whether a node of the cluster has signed this call recently, and the call comes for the first time. */
  async isFromNode(call: SignedCall, signature: string): Promise<boolean> {
    const now = this.#cluster.now();
    return (
      isSigned(call, signature, { secret: await this.#cluster.secret(), now }) &&
      this.#usedSignatures.use(signature, now)
    );
  }

  /** Whether a call is for this node, and not for a node that had its address before. */
  isForMe(node: string): boolean {
    return node === this.#cluster.node;
  }

  /** Answers another node. Throws `NotBegun` if a third node is the owner; it never forwards the call. */
  async answer(name: string, request: unknown, listeners: CallListeners): Promise<unknown> {
    if (!isCallName(name)) throw unknownCall(name);
    const owned = ownedBy[name](request as never);
    if (owned !== undefined && !this.#cluster.owns(owned)) throw new NotBegun();
    return await this.#callLocal({ name, request: request as never }, listeners);
  }

  /** Prompts the session on the node that owns its instance. Prompts of one session keep their order. */
  async prompt(
    request: Omit<AskedBy<"prompt">, "hasReader">,
    { signal, onStart, onEvent }: PromptListeners,
  ): Promise<PromptReply> {
    const ask = {
      name: "prompt",
      request: { ...request, hasReader: onEvent !== undefined },
      signal,
    } as const;
    return await this.#atOwner(ask, defined({ onStart, onEvent }), (node) =>
      this.#inOrder(request.target, (onTaken) =>
        this.#client.ask(node, ask, { ...defined({ onStart, onEvent }), onTaken }),
      ),
    );
  }

  /** Calls the owner, and calls again if the owner is lost: for reads, and for changes that are safe to repeat. */
  async ask<Name extends "abort" | "remove" | "forget">(
    name: Name,
    request: AskedBy<Name>,
  ): Promise<AnswerOf<Name>> {
    return await this.#atOwner({ name, request });
  }

  /** Reads from the owner; an instance without an owner is idle, and the store has all its data. */
  async read<Name extends "history" | "historyPage">(
    name: Name,
    request: AskedBy<Name>,
  ): Promise<AnswerOf<Name>> {
    const owned = ownedBy[name](request as never) as Owned;
    const owner = await this.#cluster.owner(owned, { fresh: false });
    const isUnowned =
      owner === undefined && (await this.#cluster.owner(owned, { fresh: true })) === undefined;
    if (isUnowned) return await this.#callLocal({ name, request });
    return await this.#atOwner({ name, request });
  }

  /** Returns the sessions that any node works on. A node that does not answer soon counts as idle. */
  async atWork(): Promise<readonly SessionKey[]> {
    const nodes = await this.#cluster.nodes();
    const answers = await Promise.all(
      nodes.map((node) => this.#askSoon(node, { name: "atWork", request: {} }).catch(() => [])),
    );
    return answers.flat();
  }

  /** Returns whether a client is connected to an instance at any node. */
  async isAttached(request: AskedBy<"attached">): Promise<boolean> {
    const nodes = await this.#cluster.nodes();
    const answers = await Promise.all(
      nodes.map((node) => this.#askSoon(node, { name: "attached", request }).catch(() => false)),
    );
    return answers.includes(true);
  }

  /** Returns whether this node owns the instance, or no other node does. */
  async isOwn(owned: Owned): Promise<boolean> {
    const owner = await this.#cluster.owner(owned);
    return owner === undefined || owner.node === this.#cluster.node;
  }

  /** Returns the fence under which this node owns the instance; 0 if it does not. */
  fence(owned: Owned): number {
    return this.#cluster.fence(owned);
  }

  close(): void {
    this.#client.close();
  }

  async #askSoon<Name extends CallName>(node: ClusterNode, call: Ask<Name>): Promise<AnswerOf<Name>> {
    if (node.node === this.#cluster.node) return await this.#callLocal(call);
    if (node.address === undefined) throw noAddress(node);
    return await this.#client.ask(node, { ...call, signal: AbortSignal.timeout(listPatienceMs) });
  }

  async #atOwner<Name extends CallName>(
    call: Ask<Name>,
    listeners: Partial<CallListeners> = {},
    askNode: (node: ClusterNode) => Promise<AnswerOf<Name>> = (node) => this.#client.ask(node, call),
  ): Promise<AnswerOf<Name>> {
    const owned = ownedBy[call.name](call.request as never) as Owned;
    let deadline = performance.now() + ownerPatienceMs;
    let last: unknown;
    for (let round = 0; ; round += 1) {
      call.signal?.throwIfAborted();
      const owner = await this.#cluster.owner(owned, { fresh: round > 0 });
      const askedAt = performance.now();
      try {
        if (owner?.node === this.#cluster.node) return await this.#callLocal(call, listeners);
        if (owner?.address !== undefined) return await askNode(owner);
        last = owner === undefined ? noOwner() : noAddress(owner);
      } catch (error) {
        const mayAskAgain = isNotBegun(error) || (call.name !== "prompt" && error instanceof NodeLost);
        if (!mayAskAgain) throw error;
        // The time that the call has waited in line for its owner, which then lost its lease, was no search for an owner.
        if (!(error instanceof Unreached)) deadline += performance.now() - askedAt;
        last = error instanceof Unreached ? outOfReach() : error;
      }
      if (performance.now() > deadline) throw last;
      await setTimeout(Math.min(pauseMs * 2 ** round, 250), undefined, { signal: call.signal }).catch(
        () => undefined,
      );
    }
  }

  async #callLocal<Name extends CallName>(
    { name, request, signal = new AbortController().signal }: Ask<Name>,
    {
      onStart = () => undefined,
      onEvent = () => undefined,
      deliver = async () => undefined,
      ...localListeners
    }: Partial<CallListeners> = {},
  ): Promise<AnswerOf<Name>> {
    const call = this.#local?.[name] as
      | ((request: AskedBy<Name>, listeners: CallListeners) => Promise<AnswerOf<Name>>)
      | undefined;
    if (call === undefined) throw noOwner();
    return await call(request, { signal: localListeners.signal ?? signal, onStart, onEvent, deliver });
  }

  /** Sends a prompt after the other node has accepted the one before it in its session: separate connections keep no order. */
  async #inOrder<Value>(target: SessionKey, send: (onTaken: () => void) => Promise<Value>): Promise<Value> {
    const name = sessionName(target);
    const before = this.#onTheWay.get(name);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onTheWay.set(name, promise);
    const onTaken = (): void => {
      resolve();
      if (this.#onTheWay.get(name) === promise) this.#onTheWay.delete(name);
    };
    try {
      await before;
      return await send(onTaken);
    } finally {
      onTaken();
    }
  }
}

function noOwner(): KitError {
  return new KitError({
    code: "unavailable",
    message: "No machine works for this instance at the moment. Try again.",
    hint: "Check that a machine of the cluster is running: kit start.",
    meta: { retry_after_s: 1 },
  });
}

function outOfReach(): KitError {
  return new KitError({
    code: "unavailable",
    message: "The machine that works for this instance cannot be reached at the moment. Try again.",
    hint: "It may be overloaded, or cut off from this machine. Prompts with an Idempotency-Key, and dispatches, reach it nevertheless.",
    meta: { retry_after_s: 5 },
  });
}

function noAddress({ host }: ClusterNode): KitError {
  return new KitError({
    code: "unavailable",
    message: "The machine that works for this instance accepts no requests of other machines.",
    hint: `A process on ${host} serves no HTTP. Prompts with an Idempotency-Key, and dispatches, reach it nevertheless.`,
    meta: { retry_after_s: 1 },
  });
}

function unknownCall(name: string): KitError {
  return new KitError({
    code: "not_found",
    message: `Nodes of this version of kit have no call "${name}": the caller has another version.`,
  });
}
