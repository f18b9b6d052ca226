import { setTimeout as delay } from "node:timers/promises";
import type { KitError } from "../../../src/base/kit-error.ts";
import { KitClient } from "../../../src/client/index.ts";
import type { KitEvent } from "../../../src/protocol/event.ts";
import { createRandom } from "../seeded-random.ts";
import { steadyNow } from "./campaign-project.ts";

/** An answer that a client got to its request. */
export type Reply =
  | { readonly what: "dispatch"; readonly id: string; readonly line: string; readonly number: number }
  | { readonly what: "prompt"; readonly line: string; readonly number: number; readonly text: string }
  | { readonly what: "run"; readonly id: string; readonly number: number }
  | { readonly what: "signal"; readonly id: string }
  | { readonly what: "payment"; readonly id: string; readonly number: number }
  | { readonly what: "decision"; readonly instance: string; readonly approved: boolean }
  | {
      readonly what: "cancel";
      readonly id: string;
      readonly line: string;
      readonly number: number;
      readonly at: number;
    }
  | { readonly what: "refused"; readonly call: string; readonly code: string; readonly message: string };

/** The events of an instance that a reader has received, in that order. */
export interface Received {
  readonly instance: string;
  readonly events: KitEvent[];
}

/** How long one request may wait for the headers of its answer, before the client tries the next node. */
const headersMs = 4_000;
const callMs = 300_000;

/**
 * Returns a client that sends each attempt to one of the servers that should run, as a balancer does, and rides out every fault: what it still
 * throws is a finding.
 */
export function createRovingClient(urls: () => readonly string[], seed: number): KitClient {
  const random = createRandom(seed);
  return new KitClient({
    baseUrl: "http://campaign.invalid",
    timeoutMs: callMs,
    idleTimeoutMs: 20_000,
    retry: { attempts: 1_000, reconnects: 1_000, baseDelayMs: 30 },
    async fetch(input, init) {
      const { pathname, search } = new URL(input instanceof Request ? input.url : input);
      const limit = new AbortController();
      const timer = setTimeout(() => limit.abort(new TypeError("The node does not answer.")), headersMs);
      const signals = [limit.signal, ...(init?.signal ? [init.signal] : [])];
      try {
        const running = urls();
        return await fetch(`${running[random(running.length)]}${pathname}${search}`, {
          ...init,
          signal: AbortSignal.any(signals),
        });
      } catch (error) {
        throw limit.signal.aborted && init?.signal?.aborted !== true ? limit.signal.reason : error;
      } finally {
        clearTimeout(timer);
      }
    },
  });
}

/** Clients that load a project until they are told to stop, and record what they were told. */
export class CampaignClients {
  readonly replies: Reply[] = [];
  readonly received: Received[] = [];
  readonly #urls: () => readonly string[];
  readonly #stop = new AbortController();
  /** Ends what waits for others' work: readers, deciders, senders of signals. */
  readonly #end = new AbortController();
  readonly #senders: Promise<void>[] = [];
  readonly #helpers: Promise<void>[] = [];
  #clients = 0;

  constructor(urls: () => readonly string[]) {
    this.#urls = urls;
  }

  start(random: (below: number) => number): void {
    for (let line = 0; line < 3; line += 1) this.#senders.push(this.#dispatches(`line-${line}`));
    for (let line = 0; line < 2; line += 1) this.#senders.push(this.#prompts(`prompt-${line}`));
    this.#senders.push(this.#talks("talk-0"), this.#runs(), this.#payments(), this.#cancels());
    this.#helpers.push(this.#decides(random), this.#decides(random), this.#signals());
    for (const instance of ["line-0", "talk-0"]) this.#helpers.push(this.#reads(instance));
  }

  /** Lets every client finish what it has begun. */
  async finish(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#senders);
  }

  /** Ends the readers, the deciders and the senders of signals. */
  async end(): Promise<void> {
    this.#end.abort();
    await Promise.all(this.#helpers);
  }

  client(): KitClient {
    this.#clients += 1;
    return createRovingClient(this.#urls, this.#clients);
  }

  async #forEach(call: string, work: (number: number) => Promise<void>): Promise<void> {
    for (let number = 1; !this.#stop.signal.aborted; number += 1) {
      try {
        await work(number);
      } catch (error) {
        this.#refused(`${call} #${number}`, error);
        await delay(100);
      }
    }
  }

  #refused(call: string, error: unknown): void {
    const { code = "none", message, meta } = error as Pick<KitError, "message"> & Partial<KitError>;
    this.replies.push({ what: "refused", call, code, message: `${message} ${JSON.stringify(meta ?? {})}` });
  }

  async #dispatches(line: string): Promise<void> {
    const client = this.client();
    await this.#forEach(`dispatch ${line}`, async (number) => {
      const { dispatch_id: id } = await client.agents.dispatch(
        "worker",
        { id: line, input: `#${number}` },
        { idempotencyKey: `${line}-${number}` },
      );
      this.replies.push({ what: "dispatch", id, line, number });
      await delay(100);
    });
  }

  async #prompts(line: string): Promise<void> {
    const client = this.client();
    await this.#forEach(`prompt ${line}`, async (number) => {
      const { text } = await client.agents.invoke(
        "worker",
        { id: line, message: `#${number}` },
        { idempotencyKey: `${line}-${number}`, timeoutMs: callMs },
      );
      this.replies.push({ what: "prompt", line, number, text });
    });
  }

  /** Long answers, streamed under a key: the deltas of the last attempt are the answer. */
  async #talks(line: string): Promise<void> {
    const client = this.client();
    await this.#forEach(`talk ${line}`, async (number) => {
      const stream = client.agents.stream(
        "worker",
        { id: line, message: `talk #${number}` },
        { idempotencyKey: `${line}-${number}`, timeoutMs: callMs },
      );
      const { text } = await stream.result();
      this.replies.push({ what: "prompt", line, number, text });
    });
  }

  async #runs(): Promise<void> {
    const client = this.client();
    await this.#forEach("start parent", async (number) => {
      const { run_id: id } = await client.workflows.start(
        "parent",
        { number },
        { idempotencyKey: `parent-${number}` },
      );
      this.replies.push({ what: "run", id, number });
      await delay(300);
    });
  }

  async #payments(): Promise<void> {
    const client = this.client();
    await this.#forEach("dispatch payment", async (number) => {
      const { dispatch_id: id } = await client.agents.dispatch(
        "payer",
        { id: `payment-${number}`, input: `pay #${number}` },
        { idempotencyKey: `payment-${number}` },
      );
      this.replies.push({ what: "payment", id, number });
      await delay(300);
    });
  }

  /** Cancels the last of three inputs of one session, which mostly still waits. */
  async #cancels(): Promise<void> {
    const client = this.client();
    await this.#forEach("cancel", async (number) => {
      const line = `cancelled-${number}`;
      const ids: string[] = [];
      for (const input of [1, 3, 5]) {
        const { dispatch_id: id } = await client.agents.dispatch(
          "worker",
          { id: line, input: `#${input}` },
          { idempotencyKey: `${line}-${input}` },
        );
        ids.push(id);
        if (input !== 5) this.replies.push({ what: "dispatch", id, line, number: input });
      }
      const last = ids[2] ?? "";
      // After a lost answer the client asks again, and is told that the input had already ended.
      const isCancelled = await client.dispatches.cancel(last);
      if (isCancelled) this.replies.push({ what: "cancel", id: last, line, number: 5, at: steadyNow() });
      await delay(500);
    });
  }

  /** Decides every waiting call at random; another one may decide otherwise at the same time. */
  async #decides(random: (below: number) => number): Promise<void> {
    const client = this.client();
    const signal = this.#end.signal;
    while (!signal.aborted) {
      try {
        const { approvals } = await client.approvals.list({}, { signal, timeoutMs: 5_000 });
        for (const { approval_id, agent, instance_id: instance } of approvals) {
          const approved = random(2) === 0;
          await this.#decide(client, { approval_id, agent, instance, approved });
        }
      } catch (error) {
        // A list that an outage refuses is asked again.
        if ((error as { readonly code?: string }).code === "internal_error")
          this.#refused("list approvals", error);
      }
      await delay(50 + random(200));
    }
  }

  async #decide(
    client: KitClient,
    call: {
      readonly approval_id: string;
      readonly agent: string;
      readonly instance: string;
      readonly approved: boolean;
    },
  ): Promise<void> {
    const { approval_id, agent, instance, approved } = call;
    // Only an answer counts: after a timeout, either may hold. The other decider asks again.
    try {
      await client.agents.approve(agent, { id: instance, approval_id, approved }, { timeoutMs: 8_000 });
      this.replies.push({ what: "decision", instance, approved });
    } catch {
      // Decided by the other one, over, or not reachable.
    }
  }

  async #signals(): Promise<void> {
    const client = this.client();
    const sent = new Set<string>();
    const signal = this.#end.signal;
    while (!signal.aborted) {
      try {
        const { runs } = await client.runs.list(
          { workflow: "kid", status: "waiting", limit: 1_000 },
          { signal },
        );
        for (const { run_id: id } of runs) {
          if (sent.has(id)) continue;
          await client.runs.signal(id, { name: "go", payload: { from: id } }, { idempotencyKey: id, signal });
          sent.add(id);
          this.replies.push({ what: "signal", id });
        }
      } catch (error) {
        if (!signal.aborted && (error as { readonly code?: string }).code !== "conflict")
          this.#refused("signal", error);
      }
      await delay(100);
    }
  }

  async #reads(instance: string): Promise<void> {
    const client = this.client();
    const received: Received = { instance, events: [] };
    this.received.push(received);
    const signal = this.#end.signal;
    // The instance begins with its first input.
    while (!signal.aborted) {
      try {
        for await (const event of client.agents.events("worker", { id: instance, after: 0 }, { signal }))
          received.events.push(event);
      } catch (error) {
        const { code } = error as { readonly code?: string };
        if (signal.aborted || (code === "not_found" && received.events.length === 0)) continue;
        this.#refused(`events of ${instance}`, error);
        return;
      }
      await delay(100);
    }
  }
}
