import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createTemporaryRepository } from "../../../src/testing/temporary-repository.ts";
import { steadyNow, type Wake } from "../../faults/campaign/campaign-project.ts";
import { createRandom } from "../../faults/seeded-random.ts";
import { createKitProcess, type KitProcess } from "../../faults/service/kit-process.ts";
import {
  answerTo,
  type ModelScript,
  type ModelServer,
  startModelServer,
} from "../../faults/service/model-server.ts";
import { Database } from "./database.ts";
import type { ClusterEngine } from "./engines.ts";
import { checkHistory, type Finding, type HistoryEntry } from "./history.ts";
import { NetworkProxy } from "./network-proxy.ts";
import { project } from "./project.ts";

/** One `kit start`, with its own proxy to the database. */
export interface Kit {
  readonly process: KitProcess;
  readonly proxy: NetworkProxy;
  isUp: boolean;
}

/** Inputs that were sent to several lines, one after the other in each line. */
export interface Load {
  readonly lines: readonly string[];
  /** Resolves with the receipts of all inputs. */
  readonly accepted: Promise<readonly string[]>;
}

export interface LoadSize {
  readonly lines: number;
  readonly each: number;
  /** The duration of an input's effect. */
  readonly ms: number;
}

/** Additions of a test to the project and to its model. */
export interface Around {
  /** More tables of the project's kit.toml. */
  readonly toml?: string;
  readonly script?: ModelScript;
  /** Files in addition to the project's, or in their place. */
  readonly files?: Readonly<Record<string, string>>;
  /** The name of a further variable with the path of the effects. */
  readonly ledger?: string;
  /** Lines of postgresql.conf. */
  readonly settings?: readonly string[];
}

/** How long a sender waits for an answer before it tries another node. */
const patienceMs = 2_000;
/** How long a sender tries: longer than any fault and the takeover after it, shorter than a test may take. */
const sendingMs = 180_000;

/** Several `kit start` over one database, which a test loads, breaks and checks. */
export class Kits {
  readonly engine: ClusterEngine;
  readonly root: string;
  readonly kits: readonly Kit[];
  readonly model: ModelServer;
  readonly wakes: Wake[] = [];
  readonly #remove: () => Promise<void>;
  readonly #ledger: string | undefined;
  readonly #entries: HistoryEntry[] = [];
  #database: Database;
  #loads = 0;

  private constructor(
    parts: Pick<Kits, "engine" | "root" | "kits" | "model"> & {
      ledger: string | undefined;
      database: Database;
      remove: () => Promise<void>;
    },
  ) {
    this.engine = parts.engine;
    this.root = parts.root;
    this.kits = parts.kits;
    this.model = parts.model;
    this.#database = parts.database;
    this.#ledger = parts.ledger;
    this.#remove = parts.remove;
  }

  static async start(
    engine: ClusterEngine,
    count = 3,
    { toml = "", script, files = {}, ledger, settings }: Around = {},
  ): Promise<Kits> {
    const database = await Database.start(settings);
    const model = await startModelServer(createRandom(1), script);
    const repository = await createTemporaryRepository();
    const { root } = repository;
    const kits: Kit[] = [];
    for (let number = 0; number < count; number += 1) {
      // Each node has its own folder, like a machine.
      const machine = `machine${number}/project`;
      const all = { ...project(model.baseUrl, `${engine.toml}\n${toml}`), ...files };
      for (const [path, text] of Object.entries(all)) await repository.write(`${machine}/${path}`, text);
      const process = await createKitProcess(join(root, machine));
      kits.push({ process, proxy: await NetworkProxy.to(database.port), isUp: false });
    }
    const remove = async (): Promise<void> => await repository[Symbol.asyncDispose]();
    const all = new Kits({ engine, root, kits, model, ledger, database, remove });
    await engine.start?.(all);
    // The first node creates the tables.
    for (const kit of kits) await all.startKit(kit);
    await database.query(engine.recorder);
    await all.untilBalanced();
    return all;
  }

  get database(): Database {
    return this.#database;
  }

  async startKit(kit: Kit, environment: Readonly<Record<string, string>> = {}): Promise<void> {
    await kit.process.start({
      ...this.engine.environment(kit),
      KIT_CLUSTER_EFFECTS: this.effectsFile,
      ...(this.#ledger === undefined ? {} : { [this.#ledger]: this.effectsFile }),
      ...environment,
    });
    kit.isUp = true;
  }

  async kill(kit: Kit): Promise<void> {
    const node = kit.process.pid;
    this.#entries.push({ what: "killed", at: Date.now(), node });
    kit.isUp = false;
    await kit.process.end("SIGKILL");
  }

  /** Stops a node with a signal; returns its exit code. */
  async end(kit: Kit): Promise<number | null> {
    kit.isUp = false;
    return await kit.process.end("SIGTERM");
  }

  freeze({ process: { pid } }: Kit): void {
    this.#entries.push({ what: "frozen", at: Date.now(), node: pid });
    process.kill(pid, "SIGSTOP");
  }

  thaw({ process: { pid } }: Kit): void {
    this.wakes.push({ pid, at: steadyNow() });
    process.kill(pid, "SIGCONT");
  }

  /** Redirects every node's proxy to another database, which replaces the previous one. */
  failOver(to: Database): void {
    this.#database = to;
    for (const { proxy } of this.kits) proxy.restore(to.port);
  }

  /** Starts to send inputs, each to different nodes until one accepts it; an earlier answer can have been lost. */
  load({ lines, each, ms }: LoadSize): Load {
    this.#loads += 1;
    const names = Array.from({ length: lines }, (_, line) => `l${this.#loads}-${line}-${ms}ms`);
    const sent = names.map(async (line, offset) => {
      const receipts: string[] = [];
      for (let number = 1; number <= each; number += 1) {
        const id = await this.dispatch(line, number, offset + number);
        this.#entries.push({ what: "accepted", at: Date.now(), id, line });
        receipts.push(id);
      }
      return receipts;
    });
    return { lines: names, accepted: Promise.all(sent).then((all) => all.flat()) };
  }

  /** Sends a request to different nodes until one answers without a server error. */
  async ask(path: string, { body, from = 0, key }: { body?: unknown; from?: number; key?: string } = {}) {
    const end = Date.now() + sendingMs;
    let last = "no answer";
    for (let time = from; Date.now() < end; time += 1) {
      const kit = this.kits[time % this.kits.length];
      try {
        const reply = await fetch(`${kit?.process.url}${path}`, {
          ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
          headers: {
            "content-type": "application/json",
            "idempotency-key": key,
          },
          signal: AbortSignal.timeout(patienceMs),
        });
        // biome-ignore lint/suspicious/noExplicitAny: a test reads any part of the answer.
        const answer = (await reply.json()) as any;
        if (reply.status < 300) return answer;
        last = `${reply.status} ${JSON.stringify(answer)}`;
        if (reply.status !== 503 && reply.status !== 429) {
          throw new RefusedError(`${path}: ${reply.status} ${JSON.stringify(answer)}`);
        }
      } catch (error) {
        if (error instanceof RefusedError) throw error;
        // The node does not listen or is frozen, or the connection broke before the answer.
        last = String(error);
      }
      await delay(20);
    }
    throw new Error(
      `No node accepted ${path} (${key}) within ${sendingMs} ms; the last answer was: ${last}\n${this.#words()}`,
    );
  }

  /** Returns the last words of the nodes, for a test that fails. */
  #words(): string {
    const words = this.kits.map(
      (kit) =>
        `${kit.process.pid} ${isAlive(kit) ? "runs" : "has ended"}: ${kit.process.stderr().slice(-2_000)}`,
    );
    return words.join("\n");
  }

  /** Sends one input until a node has accepted it; returns the id of its receipt. */
  async dispatch(line: string, number: number, from = 0): Promise<string> {
    const path = `/agents/worker/${line}/dispatch`;
    const { dispatch_id } = await this.ask(path, { body: { input: `#${number}` }, key: `#${number}`, from });
    return dispatch_id;
  }

  /** The effects that were recorded so far. */
  effects(): readonly Extract<HistoryEntry, { what: "begin" | "end" | "lost" }>[] {
    if (!existsSync(this.effectsFile)) return [];
    const lines = readFileSync(this.effectsFile, "utf8").split("\n").slice(0, -1);
    return lines.map((line) => JSON.parse(line));
  }

  /** Waits until a number of effects of a load have begun. */
  async begun({ lines }: Load, count: number): Promise<void> {
    await this.until(() => this.#effectsOf(lines).filter(({ what }) => what === "begin").length >= count);
  }

  async until(isSo: () => boolean | Promise<boolean>, withinMs = 150_000): Promise<void> {
    const deadline = Date.now() + withinMs;
    while (!(await Promise.resolve(isSo()).catch(() => false))) {
      if (Date.now() > deadline) throw new Error(`The condition never held: ${isSo}`);
      await delay(20);
    }
  }

  /** Waits until every input has a receipt and has ended. */
  async settled(load: Load): Promise<void> {
    const ids = await load.accepted;
    await this.until(async () => (await this.engine.open(this.database, ids)) === 0, 240_000).catch(
      async (error: unknown) => {
        const { rows } = await this.database.query(
          "SELECT dispatch_id, instance_id, status, shard, fence, attempts FROM kit.dispatches WHERE dispatch_id = ANY($1) AND ended_at IS NULL",
          [ids],
        );
        throw new Error(`Inputs never ended: ${JSON.stringify(rows)}\n${this.#words()}`, { cause: error });
      },
    );
  }

  /** The violations in finished loads: in the rows and effects, and in the sessions that any node reads. */
  async findings(...loads: readonly Load[]): Promise<readonly Finding[]> {
    const rows = await this.engine.history(this.database);
    const lines = new Set(loads.flatMap((load) => load.lines));
    const all = [...this.#entries, ...rows, ...this.effects()];
    const entries = all.filter((entry) => !("line" in entry) || lines.has(entry.line));
    const violations = [...checkHistory(entries)];
    for (const line of lines) violations.push(...(await this.#sessionFindings(line)));
    return violations;
  }

  /** Each input is in its session once, in order, followed by its answer. */
  async #sessionFindings(line: string): Promise<readonly Finding[]> {
    const { messages }: { readonly messages: readonly { role: string; content: unknown }[] } = await this.ask(
      `/agents/worker/${line}/history`,
    );
    const recorded = messages.flatMap(({ role, content }) => {
      const text = JSON.stringify(content);
      if (role === "user") return [/#\d+/.exec(text)?.[0] ?? text];
      const answer = /Done with #\d+\./.exec(text)?.[0];
      return role === "assistant" && answer !== undefined ? [answer] : [];
    });
    const inputs = this.#entries.filter((entry) => entry.what === "accepted" && entry.line === line);
    const expected = inputs.flatMap((_, index) => [`#${index + 1}`, answerTo(`#${index + 1}`)]);
    return JSON.stringify(recorded) === JSON.stringify(expected)
      ? []
      : [{ kind: "out of order", text: `session of ${line}: ${recorded.join(" ")}` }];
  }

  /** Waits until every running node has its share of the work. */
  async untilBalanced(): Promise<void> {
    const up = this.kits.filter(({ isUp }) => isUp).length;
    await this.until(async () => await this.engine.isBalanced(this.database, up));
  }

  /** Restores the cluster after a test: all nodes run, their proxies are open, and each has its share. */
  async heal(): Promise<void> {
    const dead = this.#dead();
    for (const kit of this.kits) {
      if (dead.includes(kit)) kit.isUp = false;
      if (kit.isUp) this.thaw(kit);
      kit.proxy.restore(this.database.port);
      kit.proxy.mute(false);
      if (!kit.isUp) await this.startKit(kit);
    }
    await this.untilBalanced();
    for (const { process } of dead) throw new Error(`A node has ended unexpectedly: ${process.stderr()}`);
    for (const { process } of this.kits) {
      if (/no code awaited/.test(process.stderr())) throw new Error(process.stderr());
    }
  }

  #dead(): readonly Kit[] {
    return this.kits.filter((kit) => kit.isUp && !isAlive(kit));
  }

  async stop(): Promise<void> {
    for (const kit of this.kits) {
      if (isAlive(kit)) this.thaw(kit);
      await kit.process.end("SIGKILL");
      kit.proxy.close();
    }
    await this.engine.stop?.();
    await this.model.close();
    await this.#database.remove();
    await this.#remove();
  }

  get effectsFile(): string {
    return join(this.root, "effects.log");
  }

  #effectsOf(lines: readonly string[]) {
    const own = new Set(lines);
    return this.effects().filter(({ line }) => own.has(line));
  }
}

function isAlive({ process: { pid } }: Kit): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

class RefusedError extends Error {}
