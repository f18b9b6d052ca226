import { isDeepStrictEqual } from "node:util";
import { isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import { Batcher } from "../../postgres/batcher.ts";
import type { DispatchReceipt } from "../../protocol/dispatch.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { AdmitRequest } from "../contract.ts";
import { checkJson } from "../shared/check-json.ts";
import {
  type DispatchRow,
  lineOf,
  notDead,
  otherInput,
  sessionFull,
  unknownDispatch,
} from "../shared/dispatches/dispatch-store.ts";
import type { LineScope } from "../shared/queue/job.ts";
import { ownerOfInput } from "../shared/queue/owners.ts";
import { checkShare, retryAfter } from "../shared/queue/share-of-line.ts";
import { isNoAnswer } from "../shared/retry-rules.ts";
import { toStoredTrace } from "../shared/stored-rows.ts";
import { type PostgresBase, toText } from "./postgres-base.ts";
import { shardOf } from "./shards.ts";

export interface AdmissionOptions {
  /** Inputs of this node's callers that wait without being stored. */
  attached(scope?: LineScope): number;
  /** Inputs are on disk, and stand in the lines of these sessions. */
  admitted(sessions: readonly SessionKey[]): void;
}

interface Asked {
  readonly request: AdmitRequest;
  readonly input: string;
  readonly owner: string;
}

interface Fresh extends Asked {
  readonly receipt: DispatchReceipt;
  readonly acceptedAt: number;
}

type Answer = DispatchReceipt | KitError;

/** How many wait in all, and of each owner and in each session: no more than in all where they were not counted. Counts go up with each input of a batch that is let in. */
class Room {
  readonly #base: PostgresBase;
  readonly #options: AdmissionOptions;
  #all: number;
  readonly #ofOwner: Map<string, number>;
  readonly #inSession: Map<string, number>;

  constructor(base: PostgresBase, options: AdmissionOptions, counts: Counts) {
    this.#base = base;
    this.#options = options;
    this.#all = counts.all;
    this.#ofOwner = counts.ofOwner;
    this.#inSession = counts.inSession;
  }

  /** Takes a place, or gives the error of what has none. */
  take(key: SessionKey, owner: string): KitError | undefined {
    const { limits, queue } = this.#base;
    const { attached } = this.#options;
    const line = lineOf(key);
    const ofOwner = this.#ofOwner.get(owner) ?? this.#all;
    const inSession = this.#inSession.get(line) ?? this.#all;
    try {
      const load = { all: this.#all + attached(), ofOwner: ofOwner + attached({ owner }) };
      checkShare(load, owner, { limits, queue, what: "inputs" });
      if (inSession + attached({ line }) >= limits.waitingPerSession) {
        throw sessionFull(limits.waitingPerSession, retryAfter(queue, { line }));
      }
    } catch (error) {
      return error as KitError;
    }
    this.#all += 1;
    this.#ofOwner.set(owner, ofOwner + 1);
    this.#inSession.set(line, inSession + 1);
    return undefined;
  }
}

interface Counts {
  readonly all: number;
  readonly ofOwner: Map<string, number>;
  readonly inSession: Map<string, number>;
}

/** For how long a count of what waits holds, where little does. */
const countMs = 250;

/** The most inputs that wait to be written; further ones are refused. */
const longestQueue = 20_000;

/**
 * Accepts inputs on any node: those of a moment share their statements. Limits are counted in the rows, so what several
 * nodes accept in the same moment may exceed them by that much.
 */
export class DispatchAdmission {
  readonly #base: PostgresBase;
  readonly #options: AdmissionOptions;
  readonly #batch: Batcher<Asked, DispatchReceipt>;
  /** How many waited in all when they were counted last, and those of this node that came since; `at` by `performance.now`. */
  #counted = { all: 0, at: Number.NEGATIVE_INFINITY };

  constructor(base: PostgresBase, options: AdmissionOptions) {
    this.#base = base;
    this.#options = options;
    this.#batch = new Batcher<Asked, DispatchReceipt>((all) => this.#admitAll(all));
  }

  /** Resolves once the input is on disk. */
  async admit(request: AdmitRequest): Promise<DispatchReceipt> {
    checkJson(request.input, "The input");
    if (this.#batch.size >= longestQueue) throw queueFullError();
    return await this.#batch.add({ request, input: toText(request.input), owner: ownerOfInput(request) });
  }

  /** For an input that is not stored: the same limits. */
  async checkRoomInLine(key: SessionKey, owner: string): Promise<void> {
    const { queue, limits } = this.#base;
    // The node's own queue answers where little waits in it; otherwise the rows of all nodes are counted.
    const all = queue.waiting();
    const isRoomy =
      all < limits.waiting / 2 &&
      queue.waiting({ owner }) < (limits.waitingPerOwner ?? limits.waiting) / 4 &&
      queue.waiting({ line: lineOf(key) }) < limits.waitingPerSession / 2;
    if (isRoomy) return;
    const room = await this.#room([{ key, owner }]);
    const refusal = room.take(key, owner);
    if (refusal !== undefined) throw refusal;
  }

  /**
   * The limit of a session once more, in the moment in which work joins its line: callers who asked together have all found
   * room. The owner's queue holds the whole line of its session.
   */
  checkLine(key: SessionKey): void {
    const { queue, limits } = this.#base;
    const line = lineOf(key);
    if (queue.waiting({ line }) < limits.waitingPerSession) return;
    throw sessionFull(limits.waitingPerSession, retryAfter(queue, { line }));
  }

  /** Puts a dead letter back, at the end of its line. */
  async redrive(dispatchId: string): Promise<void> {
    const row = await this.#base.database.row<DispatchRow>(
      "SELECT * FROM $s.dispatches WHERE dispatch_id = $1",
      [dispatchId],
    );
    if (row === undefined) throw unknownDispatch();
    if (row.status !== "failed") throw notDead();
    const room = await this.#room([{ key: row, owner: row.owner }]);
    const refusal = room.take(row, row.owner);
    if (refusal !== undefined) throw refusal;
    if (!(await this.#putBack(row))) throw notDead();
    this.#options.admitted([row]);
  }

  async #admitAll(all: readonly Asked[]): Promise<readonly Answer[]> {
    const earlier = await this.#earlier(all);
    const room = await this.#room(all.map(({ request, owner }) => ({ key: request, owner })));
    const answers = new Map<Asked, Answer>();
    const fresh: Fresh[] = [];
    const byKey = new Map<string, Fresh>();
    const again: SessionKey[] = [];
    for (const asked of all) {
      const key = keyOf(asked.request);
      const row = key === undefined ? undefined : earlier.get(key);
      const twin = key === undefined ? undefined : byKey.get(key);
      if (row !== undefined) answers.set(asked, await this.#again(asked, row, { room, again }));
      else if (twin !== undefined) answers.set(asked, isTwin(asked, twin) ? twin.receipt : otherInput());
      else {
        const refusal = room.take(asked.request, asked.owner);
        if (refusal !== undefined) answers.set(asked, refusal);
        else {
          const one = this.#toFresh(asked);
          fresh.push(one);
          answers.set(asked, one.receipt);
          if (key !== undefined) byKey.set(key, one);
        }
      }
    }
    const written = await this.#insert(fresh);
    this.#counted.all += written.size;
    // Another node was faster with the same key: its input is known by now.
    const late = new Map(
      fresh.filter(({ receipt }) => !written.has(receipt.dispatch_id)).map((one) => [one.receipt, one]),
    );
    if (late.size > 0) {
      const asked = all.filter((one) => late.has(answers.get(one) as DispatchReceipt));
      const retried = await this.#admitAll(asked);
      for (const [index, one] of asked.entries()) answers.set(one, retried[index] as Answer);
    }
    this.#options.admitted([...fresh.map(({ request }) => request), ...again]);
    return all.map((asked) => answers.get(asked) as Answer);
  }

  /** The answer to a key that is known. What is not a final answer is enqueued again. */
  async #again(
    asked: Asked,
    row: DispatchRow,
    { room, again }: { readonly room: Room; readonly again: SessionKey[] },
  ): Promise<Answer> {
    if (row.session !== asked.request.session || !isSame(asked, row)) return otherInput();
    const receipt = { dispatch_id: row.dispatch_id, accepted_at: isoTime(row.accepted_at) };
    if (!isNoAnswer(row)) return receipt;
    const refusal = room.take(row, row.owner);
    if (refusal !== undefined) return refusal;
    await this.#putBack(row);
    again.push(row);
    return receipt;
  }

  /** A new number is a new place: the end of the line. False where it had been put back already. */
  async #putBack({ dispatch_id, status }: DispatchRow): Promise<boolean> {
    const row = await this.#base.database.row(
      `UPDATE $s.dispatches SET seq = DEFAULT, status = 'queued', attempts = 0, fence = 0, next_attempt_at = NULL,
         started_at = NULL, ended_at = NULL, result = NULL
       WHERE dispatch_id = $1 AND status = $2 RETURNING 1`,
      [dispatch_id, status],
    );
    return row !== undefined;
  }

  #toFresh(asked: Asked): Fresh {
    const acceptedAt = this.#base.clock.now();
    return {
      ...asked,
      acceptedAt,
      receipt: { dispatch_id: createId("dispatch"), accepted_at: isoTime(acceptedAt) },
    };
  }

  async #earlier(all: readonly Asked[]): Promise<ReadonlyMap<string, DispatchRow>> {
    const withKey = all.map(({ request }) => request).filter((request) => keyOf(request) !== undefined);
    if (withKey.length === 0) return new Map();
    const rows = await this.#base.database.rows<DispatchRow>(
      `SELECT d.* FROM unnest($1::text[], $2::text[], $3::text[]) AS asked (agent, instance_id, idempotency_key)
       JOIN $s.dispatches AS d USING (agent, instance_id, idempotency_key)`,
      [
        withKey.map(({ agent }) => agent),
        withKey.map(({ instance_id }) => instance_id),
        withKey.map(({ idempotency_key }) => idempotency_key),
      ],
    );
    return new Map(rows.map((row) => [String(keyOf(row)), row]));
  }

  async #room(all: readonly { readonly key: SessionKey; readonly owner: string }[]): Promise<Room> {
    const { limits, database } = this.#base;
    const added = all.length + this.#options.attached();
    const least = Math.min(
      limits.waiting,
      limits.waitingPerSession,
      limits.waitingPerOwner ?? limits.waiting,
    );
    const { all: known, at } = this.#counted;
    // Where little waits a receipt costs one statement. Several nodes that accept in this moment exceed no limit, or by a little.
    if (performance.now() - at < countMs && known + added < least / 4)
      return new Room(this.#base, this.#options, { all: known, ofOwner: new Map(), inSession: new Map() });
    const sessions = [...new Map(all.map(({ key }) => [lineOf(key), key])).values()];
    const owners = [...new Set(all.map(({ owner }) => owner))];
    // Where fewer wait in all than one owner or one session may have, theirs need not be counted.
    const rows = await database.rows<{ kind: string; name: string; count: number }>(
      `WITH waiting AS MATERIALIZED (
         SELECT count(*) FROM (SELECT 1 FROM $s.dispatches WHERE ended_at IS NULL AND status = 'queued' LIMIT $1) AS few
       )
       SELECT 'all' AS kind, '' AS name, count FROM waiting
       UNION ALL
       SELECT 'owner', owner,
         (SELECT count(*) FROM (SELECT 1 FROM $s.dispatches AS d
           WHERE d.owner = asked.owner AND ended_at IS NULL AND status = 'queued' LIMIT $1) AS few)
       FROM unnest($2::text[]) AS asked (owner) WHERE (SELECT count FROM waiting) >= $8
       UNION ALL
       SELECT 'session', number::text,
         (SELECT count(*) FROM (SELECT 1 FROM $s.dispatches AS d WHERE d.shard = asked.shard AND d.agent = asked.agent
           AND d.instance_id = asked.instance_id AND d.session = asked.session AND ended_at IS NULL AND status = 'queued'
           LIMIT $6) AS few)
       FROM unnest($3::text[], $4::text[], $5::text[], $7::int[]) WITH ORDINALITY
         AS asked (agent, instance_id, session, shard, number) WHERE (SELECT count FROM waiting) >= $9`,
      [
        limits.waiting,
        owners,
        sessions.map(({ agent }) => agent),
        sessions.map(({ instance_id }) => instance_id),
        sessions.map(({ session }) => session),
        limits.waitingPerSession,
        sessions.map((key) => shardOf(key)),
        (limits.waitingPerOwner ?? Math.floor(limits.waiting / 2)) - added,
        limits.waitingPerSession - added,
      ],
    );
    const of = (kind: string) => rows.filter((row) => row.kind === kind);
    this.#counted = { all: of("all")[0]?.count ?? 0, at: performance.now() };
    return new Room(this.#base, this.#options, {
      all: of("all")[0]?.count ?? 0,
      ofOwner: new Map(of("owner").map(({ name, count }) => [name, count])),
      inSession: new Map(
        of("session").map(({ name, count }) => [lineOf(sessions[Number(name) - 1] as SessionKey), count]),
      ),
    });
  }

  /** Gives the ids of those that are new: where another node has used a key meanwhile, its input stays. */
  async #insert(all: readonly Fresh[]): Promise<ReadonlySet<string>> {
    if (all.length === 0) return new Set();
    const column = (value: (one: Fresh) => unknown): unknown[] => all.map(value);
    const rows = await this.#base.database.rows<Pick<DispatchRow, "dispatch_id">>(
      `INSERT INTO $s.dispatches
         (dispatch_id, agent, instance_id, session, shard, status, idempotency_key, accepted_at, input, owner, trace)
       SELECT dispatch_id, agent, instance_id, session, shard, 'queued', key, accepted_at, input, owner, trace
       FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::int[], $6::text[], $7::bigint[], $8::text[],
         $9::text[], $10::text[]) WITH ORDINALITY
         AS new (dispatch_id, agent, instance_id, session, shard, key, accepted_at, input, owner, trace, number)
       ORDER BY number
       ON CONFLICT (agent, instance_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
       RETURNING dispatch_id`,
      [
        column(({ receipt }) => receipt.dispatch_id),
        column(({ request }) => request.agent),
        column(({ request }) => request.instance_id),
        column(({ request }) => request.session),
        column(({ request }) => shardOf({ agent: request.agent, instance_id: request.instance_id })),
        column(({ request }) => request.idempotency_key ?? null),
        column(({ acceptedAt }) => acceptedAt),
        column(({ input }) => input),
        column(({ owner }) => owner),
        column(({ request }) => toStoredTrace(request)),
      ],
    );
    return new Set(rows.map(({ dispatch_id }) => dispatch_id));
  }
}

/** Members of an object may come in another order: that is no other input. */
function isSame(one: { readonly input: string }, other: { readonly input: string }): boolean {
  return one.input === other.input || isDeepStrictEqual(JSON.parse(one.input), JSON.parse(other.input));
}

function isTwin(one: Asked, other: Asked): boolean {
  return one.request.session === other.request.session && isSame(one, other);
}

function keyOf(request: {
  readonly agent: string;
  readonly instance_id: string;
  readonly idempotency_key?: string | null | undefined;
}): string | undefined {
  const { agent, instance_id, idempotency_key: key } = request;
  return key === undefined || key === null ? undefined : JSON.stringify([agent, instance_id, key]);
}

function queueFullError(): KitError {
  return new KitError({
    code: "unavailable",
    message: "Too much work waits to be written.",
    meta: { retry_after_s: 1 },
  });
}
