import { Batcher } from "../../postgres/batcher.ts";
import type { PostgresDatabase } from "../../postgres/database.ts";
import { isStoreUnavailable } from "../../protocol/error-code.ts";
import { type InstanceKey, instanceName, sessionName } from "../../protocol/session-name.ts";
import type { AppendRequest } from "../contract.ts";
import { encodeEntry } from "../entry-text.ts";
import { conflict, staleWriter, toErrorText } from "../session-row.ts";
import { summarize } from "../session-summary.ts";
import type { Statements } from "./session-tables.ts";

interface Claim {
  readonly instance: InstanceKey;
  readonly fence: number;
}

interface Append {
  readonly request: AppendRequest;
  readonly lines: readonly string[];
}

type Outcome = Error | undefined;

/** How long the first reader of an unused instance need not ask. An append checks the position, whatever was read. */
const unusedMs = 1_000;
const maxUnused = 10_000;
/** Entries of this length are written alone, because their neighbours would wait for them. */
const longAppend = 64_000;

/**
 * The appends and claims of a store. Those that are called while a statement runs share the next one. Each statement locks its rows
 * in the order of their names, so that the statements of two nodes never wait for each other.
 */
export class SessionWrites {
  readonly #database: PostgresDatabase;
  readonly #statements: Statements;
  readonly #appends = new Batcher<Append, void>((all) => this.#appendAll(all));
  readonly #claims = new Batcher<Claim, void>((all) => this.#claimAll(all));
  /** Instances that had no session when this process claimed them, with the time by `performance.now` until which that counts. */
  readonly #unused = new Map<string, number>();

  constructor(database: PostgresDatabase, statements: Statements) {
    this.#database = database;
    this.#statements = statements;
  }

  async append(request: AppendRequest): Promise<void> {
    this.#unused.delete(instanceName(request.key));
    const lines = request.entries.map(encodeEntry);
    const append = { request, lines };
    if (lines.reduce((length, line) => length + line.length, 0) < longAppend)
      return await this.#appends.add(append);
    const [error] = await this.#write([append]);
    if (error !== undefined) throw error;
  }

  async claim(instance: InstanceKey, fence: number): Promise<void> {
    await this.#claims.add({ instance, fence });
  }

  /** Whether an instance had no session when this process claimed it just now; true once per claim. */
  takeUnused(instance: InstanceKey): boolean {
    const name = instanceName(instance);
    const isUnused = (this.#unused.get(name) ?? 0) > performance.now();
    this.#unused.delete(name);
    return isUnused;
  }

  /** Writes appends to several sessions in one statement; those to one session one after the other. */
  async #appendAll(all: readonly Append[]): Promise<readonly Outcome[]> {
    const first = new Map<string, Append>();
    for (const append of all) {
      const name = sessionName(append.request.key);
      if (!first.has(name)) first.set(name, append);
    }
    const together = [...first.values()];
    const outcomes = new Map<Append, Outcome>();
    for (const [index, outcome] of (await this.#write(together)).entries())
      outcomes.set(together[index] as Append, outcome);
    const later = all.filter((append) => !outcomes.has(append));
    if (later.length > 0)
      for (const [index, outcome] of (await this.#appendAll(later)).entries())
        outcomes.set(later[index] as Append, outcome);
    return all.map((append) => outcomes.get(append));
  }

  /** An error of one append undoes the whole statement: then each is written alone, so that only this one fails. */
  async #write(all: readonly Append[]): Promise<readonly Outcome[]> {
    try {
      const written = await this.#writeTogether(all);
      return await Promise.all(
        all.map(async ({ request }, index) =>
          written.has(index + 1) ? undefined : await this.#refusal(request),
        ),
      );
    } catch (error) {
      if (isStoreUnavailable(error)) throw error;
      if (all.length === 1) return [error as Error];
      const outcomes: Outcome[] = [];
      for (const append of all) outcomes.push(...(await this.#write([append])));
      return outcomes;
    }
  }

  /** Returns the numbers of the appends, from 1, whose session was at the expected position. */
  async #writeTogether(all: readonly Append[]): Promise<ReadonlySet<number>> {
    const column = (value: (request: AppendRequest) => unknown): unknown[] =>
      all.map(({ request }) => value(request) ?? null);
    const summaries = all.map(({ request }) => summarize(request.entries));
    const lines = all.flatMap((append, index) =>
      append.lines.map((data, line) => ({ number: index + 1, line: line + 1, data })),
    );
    const rows = await this.#database.query(this.#statements.append, [
      column(({ key }) => key.agent),
      column(({ key }) => key.instance_id),
      column(({ key }) => key.session),
      column(({ expected }) => expected),
      column(({ entries }) => entries.length),
      column(({ input }) => input),
      column(({ parent }) => parent?.agent),
      column(({ parent }) => parent?.instance_id),
      column(({ parent }) => parent?.session),
      column(({ fence }) => fence),
      column(({ key, lease_on = key }) => lease_on.agent),
      column(({ key, lease_on = key }) => lease_on.instance_id),
      summaries.map(({ title }) => title ?? null),
      summaries.map(({ state }) => state ?? null),
      summaries.map(({ error }) => toErrorText(error)),
      summaries.map(({ tokens }) => tokens),
      summaries.map(({ cost }) => cost),
      new Date().toISOString(),
      lines.map(({ number }) => number),
      lines.map(({ line }) => line),
      lines.map(({ data }) => data),
    ]);
    return new Set(rows.map(({ number }) => Number(number)));
  }

  /** The error of an append that was not written. */
  async #refusal({ key, fence, lease_on = key }: AppendRequest): Promise<Error> {
    if (fence === undefined) return conflict();
    const { agent, instance_id } = lease_on;
    const rows = await this.#database.query(this.#statements.fence, [agent, instance_id]);
    return rows.some((row) => fence < Number(row.fence)) ? staleWriter() : conflict();
  }

  async #claimAll(all: readonly Claim[]): Promise<readonly undefined[]> {
    // A statement can name a row once.
    const highest = new Map<string, Claim>();
    for (const claim of all) {
      const name = instanceName(claim.instance);
      if (claim.fence >= (highest.get(name)?.fence ?? claim.fence)) highest.set(name, claim);
    }
    const claims = [...highest.values()];
    const rows = await this.#database.query(this.#statements.claim, [
      claims.map(({ instance }) => instance.agent),
      claims.map(({ instance }) => instance.instance_id),
      claims.map(({ fence }) => fence),
    ]);
    const until = performance.now() + unusedMs;
    if (this.#unused.size >= maxUnused) this.#unused.clear();
    for (const { agent, instance_id, used } of rows)
      if (used === false)
        this.#unused.set(instanceName({ agent: String(agent), instance_id: String(instance_id) }), until);
    return all.map(() => undefined);
  }
}
