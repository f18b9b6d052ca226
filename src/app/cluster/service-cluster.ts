import { setTimeout } from "node:timers/promises";
import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import { type ClusterNode, type EngineCluster, NotBegun, type Owned } from "../../engine/cluster.ts";
import type { EventLog } from "../../engine/contract.ts";
import type { PromptReply } from "../../protocol/prompt.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import {
  type AnswerOf,
  type AskedBy,
  type CallListeners,
  type CallName,
  isCallName,
  type NodeCalls,
  ownedBy,
} from "./node-calls.ts";
import { isNotBegun, NodeClient, NodeLost } from "./node-client.ts";
import { createSharedEvents, createStreamAnswers, type StreamAnswers } from "./shared-events.ts";
import { isSigned, type SignedCall } from "./signature.ts";

/** How long a call waits for an owner: a takeover after a node froze takes three seconds. */
const ownerPatienceMs = 5_000;
/** The first pause between two looks for it. */
const pauseMs = 50;
/** How long lists wait for what other nodes know. */
const listPatienceMs = 1_000;

export interface ServiceClusterOptions {
  readonly cluster: EngineCluster;
  readonly events: EventLog;
  /** Where other nodes reach this one, where the configuration says so. */
  readonly address?: string | undefined;
}

type Ask<Name extends CallName> = {
  readonly name: Name;
  readonly asked: AskedBy<Name>;
  readonly signal?: AbortSignal | undefined;
};

type PromptListeners = {
  readonly [Name in "signal" | "onStart" | "onEvent"]?: CallListeners[Name] | undefined;
};

/** The service of one node of a cluster: what it does not know itself, it asks the node that does. */
export class ServiceCluster {
  /** The event log as any node reads it. */
  readonly events: EventLog;
  /** The answers about the streams that this node writes. */
  readonly streamAnswers: StreamAnswers;
  readonly #cluster: EngineCluster;
  #address: string | undefined;
  readonly #client: NodeClient;
  /** The last prompt of each session that is on its way to another node. */
  readonly #onTheWay = new Map<string, Promise<void>>();
  #local: NodeCalls | undefined;

  constructor({ cluster, events, address }: ServiceClusterOptions) {
    this.#cluster = cluster;
    this.#address = address;
    this.#client = new NodeClient(cluster);
    this.events = createSharedEvents({ events, cluster, client: this.#client });
    this.streamAnswers = createStreamAnswers(events, cluster);
  }

  /** Gives the calls that this node answers. */
  serve(local: NodeCalls): void {
    this.#local = local;
  }

  /** Says where this node is reached; the configuration's address goes before the one of its listener. */
  async announce(listening: string): Promise<void> {
    this.#address ??= listening;
    await this.#cluster.announce(this.#address);
  }

  /** Where other nodes reach this one. */
  get address(): string | undefined {
    return this.#address;
  }

  /** Whether a node of the cluster has asked this one for that, just now. */
  async isFromNode(call: SignedCall, signature: string): Promise<boolean> {
    return isSigned(call, signature, { secret: await this.#cluster.secret(), now: this.#cluster.now() });
  }

  /** Whether a call is for this node: not for one that had its address before. */
  isForMe(node: string): boolean {
    return node === this.#cluster.node;
  }

  /** Answers another node; `NotBegun` where a third one owns what it asks for. Never asks any other. */
  async answer(name: string, asked: unknown, listeners: CallListeners): Promise<unknown> {
    if (!isCallName(name)) throw unknownCall(name);
    const owned = ownedBy[name](asked as never);
    if (owned !== undefined && !this.#cluster.owns(owned)) throw new NotBegun();
    return await this.#callLocal({ name, asked: asked as never }, listeners);
  }

  /** Prompts the session on the node that owns its instance. Those of one session keep their order. */
  async prompt(
    asked: Omit<AskedBy<"prompt">, "hasReader">,
    { signal, onStart, onEvent }: PromptListeners,
  ): Promise<PromptReply> {
    const ask = { name: "prompt", asked: { ...asked, hasReader: onEvent !== undefined }, signal } as const;
    return await this.#atOwner(ask, defined({ onStart, onEvent }), (node) =>
      this.#inOrder(asked.target, (onTaken) =>
        this.#client.ask(node, ask, { ...defined({ onStart, onEvent }), onTaken }),
      ),
    );
  }

  /** Asks the owner. What changes nothing, or may be done twice, is asked again where the owner is lost. */
  async ask<Name extends "abort" | "remove" | "forget">(
    name: Name,
    asked: AskedBy<Name>,
  ): Promise<AnswerOf<Name>> {
    return await this.#atOwner({ name, asked });
  }

  /** Asks the owner; an instance without an owner is idle, and the store holds all of it. */
  async read<Name extends "history" | "historyPage">(
    name: Name,
    asked: AskedBy<Name>,
  ): Promise<AnswerOf<Name>> {
    const owned = ownedBy[name](asked as never) as Owned;
    const owner = await this.#cluster.owner(owned, { fresh: false });
    const isUnowned =
      owner === undefined && (await this.#cluster.owner(owned, { fresh: true })) === undefined;
    if (isUnowned) return await this.#callLocal({ name, asked });
    return await this.#atOwner({ name, asked });
  }

  /** Which sessions are worked on, on any node. A node that does not answer soon is taken to work on none. */
  async working(sessions: readonly SessionKey[]): Promise<readonly boolean[]> {
    const owners = await Promise.all(sessions.map((key) => this.#cluster.owner(key).catch(() => undefined)));
    const answers = new Map<SessionKey, boolean>();
    const nodes = new Map(owners.flatMap((owner) => (owner === undefined ? [] : [[owner.node, owner]])));
    await Promise.all(
      [...nodes.values()].map(async (node) => {
        const own = sessions.filter((_, at) => owners[at]?.node === node.node);
        const states = await this.#askSoon(node, { name: "working", asked: own }).catch(() => []);
        for (const [at, key] of own.entries()) answers.set(key, states[at] === true);
      }),
    );
    return sessions.map((key) => answers.get(key) === true);
  }

  /** Whether a client is connected to an instance at any node. */
  async isAttached(asked: AskedBy<"attached">): Promise<boolean> {
    const nodes = await this.#cluster.nodes();
    const answers = await Promise.all(
      nodes.map((node) => this.#askSoon(node, { name: "attached", asked }).catch(() => false)),
    );
    return answers.includes(true);
  }

  /** Whether this node works for the instance, or no other does. */
  async isOwn(owned: Owned): Promise<boolean> {
    const owner = await this.#cluster.owner(owned);
    return owner === undefined || owner.node === this.#cluster.node;
  }

  /** The fence under which this node works for the instance; 0 where it does not. */
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
    const owned = ownedBy[call.name](call.asked as never) as Owned;
    const deadline = performance.now() + ownerPatienceMs;
    let last: unknown;
    for (let round = 0; ; round += 1) {
      call.signal?.throwIfAborted();
      const owner = await this.#cluster.owner(owned, { fresh: round > 0 });
      try {
        if (owner?.node === this.#cluster.node) return await this.#callLocal(call, listeners);
        if (owner?.address !== undefined) return await askNode(owner);
        last = owner === undefined ? noOwner() : noAddress(owner);
      } catch (error) {
        const mayAskAgain = isNotBegun(error) || (call.name !== "prompt" && error instanceof NodeLost);
        if (!mayAskAgain) throw error;
        last = error;
      }
      if (performance.now() > deadline) throw last;
      await setTimeout(Math.min(pauseMs * 2 ** round, 250), undefined, { signal: call.signal }).catch(
        () => undefined,
      );
    }
  }

  async #callLocal<Name extends CallName>(
    { name, asked, signal = new AbortController().signal }: Ask<Name>,
    {
      onStart = () => undefined,
      onEvent = () => undefined,
      deliver = async () => undefined,
      ...given
    }: Partial<CallListeners> = {},
  ): Promise<AnswerOf<Name>> {
    const call = this.#local?.[name] as
      | ((asked: AskedBy<Name>, listeners: CallListeners) => Promise<AnswerOf<Name>>)
      | undefined;
    if (call === undefined) throw noOwner();
    return await call(asked, { signal: given.signal ?? signal, onStart, onEvent, deliver });
  }

  /** Connections overtake each other: a prompt is sent once the one before it in its session was taken. */
  async #inOrder<Value>(target: SessionKey, send: (onTaken: () => void) => Promise<Value>): Promise<Value> {
    const name = JSON.stringify([target.agent, target.instance_id, target.session]);
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
    hint: "The machines of the cluster share its work among them: is one of them started, with kit start?",
    meta: { retry_after_s: 1 },
  });
}

function noAddress({ host }: ClusterNode): KitError {
  return new KitError({
    code: "unavailable",
    message: "The machine that works for this instance takes no requests of others.",
    hint: `A process on ${host} serves no HTTP. Prompts with an Idempotency-Key, and dispatches, reach it nevertheless.`,
    meta: { retry_after_s: 1 },
  });
}

function unknownCall(name: string): KitError {
  return new KitError({
    code: "not_found",
    message: `Nodes of this kit answer no call "${name}": another version asks.`,
  });
}
