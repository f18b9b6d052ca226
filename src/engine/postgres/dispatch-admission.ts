import { isDeepStrictEqual } from "node:util";
import { isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import type { KitError } from "../../base/kit-error.ts";
import { Batcher } from "../../postgres/batcher.ts";
import type { DispatchReceipt } from "../../protocol/dispatch.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { AdmitRequest } from "../contract.ts";
import {
  type DispatchRow,
  notDead,
  otherInput,
  sessionFull,
  unknownDispatch,
} from "../shared/dispatches/dispatch-store.ts";
import { queueFullError } from "../shared/engine-base.ts";
import { checkJson } from "../shared/json-values.ts";
import type { LineScope } from "../shared/queue/job.ts";
import { lineOf, ownerOfInput } from "../shared/queue/owners.ts";
import { checkShare, retryAfter } from "../shared/queue/share-of-line.ts";
import { arrivalOf, earlierReceipt, isNoAnswer } from "../shared/retry-rules.ts";
import { toStoredTrace } from "../shared/stored-rows.ts";
import { type PostgresBase, toText } from "./postgres-base.ts";
import { shardCount, shardOf } from "./shards.ts";

export interface AdmissionOptions {
  /** The number of inputs of this node's callers that wait without being stored. */
  attached(scope?: LineScope): number;
  /** Called once inputs of these sessions are on disk. */
  admitted(sessions: readonly SessionKey[]): void;
}

interface Candidate {
  readonly request: AdmitRequest;
  readonly input: string;
  readonly owner: string;
  /** When the request came, in ms since 1970. */
  readonly since: number;
}

interface NewInput extends Candidate {
  readonly receipt: DispatchReceipt;
  readonly acceptedAt: number;
}

type Answer = DispatchReceipt | KitError;

/**
 * Counts of the waiting inputs: in total, per owner and per session. For an owner or a session that was not counted, the
 * total is the upper bound. Each accepted input of a batch raises the counts.
 */
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

  /** Counts an input if there is room for it; otherwise returns the error. */
  take(key: SessionKey, owner: string): KitError | undefined {
    const { limits, queue } = this.#base;
    const { attached } = this.#options;
    const line = lineOf(key);
    const ofOwner = this.#ofOwner.get(owner) ?? this.#all;
    const inSession = this.#inSession.get(line) ?? this.#all;
    try {
      const load = { all: this.#all + attached(), ofOwner: ofOwner + attached({ owner }) };
      checkShare(load, owner, { limits, queue, jobs: "inputs" });
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

/** How long the total is reused while it is small. */
const countMs = 250;

/** The most inputs that wait to be written; further ones are refused. */
const longestQueue = 20_000;

/**
 * Accepts inputs on any node; concurrent inputs share statements. The counts for the limits come from the rows, so inputs
 * that several nodes accept at the same moment can exceed the limits a little.
 */
export class DispatchAdmission {
  readonly #base: PostgresBase;
  readonly #options: AdmissionOptions;
  readonly #batch: Batcher<Candidate, DispatchReceipt>;
  /** The last counted total, plus the inputs that this node has accepted since; `at` by `performance.now`. */
  #counted = { all: 0, at: Number.NEGATIVE_INFINITY };

  constructor(base: PostgresBase, options: AdmissionOptions) {
    this.#base = base;
    this.#options = options;
    this.#batch = new Batcher<Candidate, DispatchReceipt>((all) => this.#admitAll(all));
  }

  /** Resolves once the input is on disk. */
  async admit(request: AdmitRequest): Promise<DispatchReceipt> {
    checkJson(request.input, "The input");
    if (this.#batch.size >= longestQueue) throw queueFullError();
    const since = arrivalOf(request, this.#base.clock.now());
    return await this.#batch.add({
      request,
      input: toText(request.input),
      owner: ownerOfInput(request),
      since,
    });
  }

  /** Checks the limits for an input that is not stored. */
  async checkRoomInLine(key: SessionKey, owner: string): Promise<void> {
    const { queue, limits } = this.#base;
    // If little waits in this node's queue, there is room; otherwise the rows of all nodes are counted.
    const all = queue.waiting();
    const isRoomy =
      all < limits.waiting / 2 &&
      queue.waiting({ owner }) < (limits.waitingPerOwner ?? limits.waiting) / 4 &&
      queue.waiting({ line: lineOf(key) }) < limits.waitingPerSession / 2;
    if (isRoomy) return;
    const room = await this.#countRoom([{ key, owner }]);
    const refusal = room.take(key, owner);
    if (refusal !== undefined) throw refusal;
  }

  /**
   * Checks the limit of a session again, at the moment in which work joins its line: concurrent callers have all found
   * room before. The owner's queue holds the whole line of the session.
   */
  checkLine(key: SessionKey): void {
    const { queue, limits } = this.#base;
    const line = lineOf(key);
    if (queue.waiting({ line }) < limits.waitingPerSession) return;
    throw sessionFull(limits.waitingPerSession, retryAfter(queue, { line }));
  }

  /** Requeues a dead letter at the end of its line. */
  async redrive(dispatchId: string): Promise<void> {
    const row = await this.#base.database.row<DispatchRow>(
      "SELECT * FROM $s.dispatches WHERE dispatch_id = $1",
      [dispatchId],
    );
    if (row === undefined) throw unknownDispatch();
    if (row.status !== "failed") throw notDead();
    const room = await this.#countRoom([{ key: row, owner: row.owner }]);
    const refusal = room.take(row, row.owner);
    if (refusal !== undefined) throw refusal;
    if (!(await this.#putBack(row))) throw notDead();
    this.#options.admitted([row]);
  }

  async #admitAll(all: readonly Candidate[]): Promise<readonly Answer[]> {
    const earlier = await this.#earlier(all);
    const room = await this.#countRoom(all.map(({ request, owner }) => ({ key: request, owner })));
    const answers = new Map<Candidate, Answer>();
    const added: NewInput[] = [];
    const byKey = new Map<string, NewInput>();
    const requeued: SessionKey[] = [];
    for (const candidate of all) {
      const key = keyOf(candidate.request);
      const row = key === undefined ? undefined : earlier.get(key);
      const twin = key === undefined ? undefined : byKey.get(key);
      if (row !== undefined)
        answers.set(candidate, await this.#answerEarlier(candidate, row, { room, requeued }));
      else if (twin !== undefined)
        answers.set(candidate, isTwin(candidate, twin) ? twin.receipt : otherInput());
      else {
        const refusal = room.take(candidate.request, candidate.owner);
        if (refusal !== undefined) answers.set(candidate, refusal);
        else {
          const input = this.#toNewInput(candidate);
          added.push(input);
          answers.set(candidate, input.receipt);
          if (key !== undefined) byKey.set(key, input);
        }
      }
    }
    const written = await this.#insert(added);
    this.#counted.all += written.size;
    // Another node was faster with the same key: the next round finds its input.
    const late = new Set(
      added.map(({ receipt }) => receipt).filter((receipt) => !written.has(receipt.dispatch_id)),
    );
    if (late.size > 0) {
      const candidates = all.filter((candidate) => late.has(answers.get(candidate) as DispatchReceipt));
      const retried = await this.#admitAll(candidates);
      for (const [index, candidate] of candidates.entries()) answers.set(candidate, retried[index] as Answer);
    }
    this.#options.admitted([...added.map(({ request }) => request), ...requeued]);
    return all.map((candidate) => answers.get(candidate) as Answer);
  }

  /** The answer for a known idempotency key. An input without a final answer is enqueued again. */
  async #answerEarlier(
    candidate: Candidate,
    row: DispatchRow,
    { room, requeued }: { readonly room: Room; readonly requeued: SessionKey[] },
  ): Promise<Answer> {
    if (row.session !== candidate.request.session || !isSame(candidate, row)) return otherInput();
    if (!isNoAnswer(row, candidate.since)) return { dispatch_id: row.dispatch_id, ...earlierReceipt(row) };
    const receipt = { dispatch_id: row.dispatch_id, accepted_at: isoTime(row.accepted_at) };
    const refusal = room.take(row, row.owner);
    if (refusal !== undefined) return refusal;
    await this.#putBack(row);
    requeued.push(row);
    return receipt;
  }

  /** Requeues an input with a new `seq`, at the end of its line. False if another node has requeued it. */
  async #putBack({ dispatch_id, status }: DispatchRow): Promise<boolean> {
    const row = await this.#base.database.row(
      `UPDATE $s.dispatches SET seq = DEFAULT, status = 'queued', attempts = 0, spent = 0, progress = 0, charged = '{}', fence = 0, next_attempt_at = NULL,
         started_at = NULL, ended_at = NULL, result = NULL
       WHERE dispatch_id = $1 AND status = $2 RETURNING 1`,
      [dispatch_id, status],
    );
    return row !== undefined;
  }

  #toNewInput(candidate: Candidate): NewInput {
    const acceptedAt = this.#base.clock.now();
    return {
      ...candidate,
      acceptedAt,
      receipt: { dispatch_id: createId("dispatch"), accepted_at: isoTime(acceptedAt) },
    };
  }

  async #earlier(all: readonly Candidate[]): Promise<ReadonlyMap<string, DispatchRow>> {
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

  async #countRoom(all: readonly { readonly key: SessionKey; readonly owner: string }[]): Promise<Room> {
    const { limits, database } = this.#base;
    const added = all.length + this.#options.attached();
    const least = Math.min(
      limits.waiting,
      limits.waitingPerSession,
      limits.waitingPerOwner ?? limits.waiting,
    );
    // While little waits, a receipt costs one statement. Several nodes that accept at this moment exceed no limit by much.
    const few = this.#knownCount();
    if (few !== undefined && few + added < least / 4)
      return new Room(this.#base, this.#options, { all: few, ofOwner: new Map(), inSession: new Map() });
    const sessions = [...new Map(all.map(({ key }) => [lineOf(key), key])).values()];
    const owners = [...new Set(all.map(({ owner }) => owner))];
    // If the total is below the limit of one owner or session, these need not be counted.
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
    const rowsOf = (kind: string) => rows.filter((row) => row.kind === kind);
    this.#counted = { all: rowsOf("all")[0]?.count ?? 0, at: performance.now() };
    return new Room(this.#base, this.#options, {
      all: rowsOf("all")[0]?.count ?? 0,
      ofOwner: new Map(rowsOf("owner").map(({ name, count }) => [name, count])),
      inSession: new Map(
        rowsOf("session").map(({ name, count }) => [lineOf(sessions[Number(name) - 1] as SessionKey), count]),
      ),
    });
  }

  /** The total without a question: the queue of a node without others has all that waits, and a count is good for a moment. */
  #knownCount(): number | undefined {
    const { ownership, queue } = this.#base;
    if (ownership.others === 0 && ownership.shards.length === shardCount) return queue.waiting();
    const { all, at } = this.#counted;
    return performance.now() - at < countMs ? all : undefined;
  }

  /** Returns the ids of the inserted inputs. An input whose key another node has used meanwhile is not inserted. */
  async #insert(all: readonly NewInput[]): Promise<ReadonlySet<string>> {
    if (all.length === 0) return new Set();
    const column = (value: (input: NewInput) => unknown): unknown[] => all.map(value);
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

/** Compares two inputs; the order of an object's properties does not matter. */
function isSame(input: { readonly input: string }, other: { readonly input: string }): boolean {
  return input.input === other.input || isDeepStrictEqual(JSON.parse(input.input), JSON.parse(other.input));
}

function isTwin(candidate: Candidate, other: Candidate): boolean {
  return candidate.request.session === other.request.session && isSame(candidate, other);
}

function keyOf(request: {
  readonly agent: string;
  readonly instance_id: string;
  readonly idempotency_key?: string | null | undefined;
}): string | undefined {
  const { agent, instance_id, idempotency_key: key } = request;
  return key === undefined || key === null ? undefined : JSON.stringify([agent, instance_id, key]);
}
