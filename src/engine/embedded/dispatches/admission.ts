import { isDeepStrictEqual } from "node:util";
import { isoTime } from "../../../base/clock.ts";
import { createId } from "../../../base/id.ts";
import { KitError } from "../../../base/kit-error.ts";
import type { DispatchReceipt } from "../../../protocol/dispatch.ts";
import type { SessionKey } from "../../../protocol/session-entry.ts";
import type { AdmitRequest } from "../../contract.ts";
import { query } from "../database/query.ts";
import type { EngineBase } from "../engine-base.ts";
import type { EngineLimits } from "../engine-limits.ts";
import { checkJson } from "../runs/check-json.ts";
import { type DispatchPlace, type DispatchRow, lineOf } from "./dispatch-rows.ts";

export interface Admission {
  readonly receipt: DispatchReceipt;
  /** Set when it is new: it has to join its line. */
  readonly place?: DispatchPlace;
}

export interface Admissions {
  /** Resolves once the input is on disk. */
  admit(request: AdmitRequest): Promise<Admission>;
  /** In a transaction: throws when there is no room for one more. */
  checkRoom(key: SessionKey): void;
  /** For an input that is not stored: the same, as a rule without asking the database. */
  checkRoomInLine(key: SessionKey): void;
}

export interface AdmissionOptions {
  readonly limits: EngineLimits;
  /** Inputs that wait without being stored: in a session, or in all. */
  attached(key?: SessionKey): number;
}

export function createAdmissions(base: EngineBase, options: AdmissionOptions): Admissions {
  const { database, blobs, clock, lines } = base;
  const { limits, attached } = options;
  const load = query<{ waiting: number; in_session: number }>(
    database,
    `SELECT waiting, (SELECT count(*) FROM dispatches
       WHERE agent = ? AND instance_id = ? AND session = ? AND status = 'queued') AS in_session
     FROM dispatch_load`,
  );
  const byKey = query<DispatchRow>(
    database,
    "SELECT * FROM dispatches WHERE agent = ? AND instance_id = ? AND idempotency_key = ?",
  );
  const insert = query<{ seq: number }>(
    database,
    `INSERT INTO dispatches (dispatch_id, agent, instance_id, session, status, idempotency_key, accepted_at, input)
     VALUES (?, ?, ?, ?, 'queued', ?, ?, ?) RETURNING seq`,
  );

  function checkRoom(key: SessionKey): void {
    const stored = load.get(key.agent, key.instance_id, key.session);
    if (Number(stored?.waiting) + attached() >= limits.waiting) throw full();
    if (Number(stored?.in_session) + attached(key) >= limits.waitingPerSession)
      throw crowded(limits.waitingPerSession);
  }

  function checkRoomInLine(key: SessionKey): void {
    // In line is all that waits, but for what other processes accept at this moment, and runs too: where that is
    // little, there is room.
    if (lines.waiting() < limits.waiting && lines.waiting(lineOf(key)) < limits.waitingPerSession) return;
    checkRoom(key);
  }

  /** What the key has been used for before. */
  function earlier(request: AdmitRequest, input: string): Admission | undefined {
    if (request.idempotency_key === undefined) return undefined;
    const row = byKey.get(request.agent, request.instance_id, request.idempotency_key);
    if (row === undefined) return undefined;
    if (row.session !== request.session || !isSame(row.input, input)) throw otherInput();
    return { receipt: { dispatch_id: row.dispatch_id, accepted_at: isoTime(row.accepted_at) } };
  }

  /** Members of an object may come in another order: that is no other input. */
  function isSame(one: string, other: string): boolean {
    return one === other || isDeepStrictEqual(blobs.load(one), blobs.load(other));
  }

  return {
    checkRoom,
    checkRoomInLine,
    async admit(request) {
      checkJson(request.input, "The input");
      const input = await blobs.store(request.input);
      const { agent, instance_id, session, idempotency_key } = request;
      return base.commit((): Admission => {
        const known = earlier(request, input);
        if (known !== undefined) return known;
        checkRoom(request);
        const dispatch_id = createId("dispatch");
        const now = clock.now();
        const row = insert.get(dispatch_id, agent, instance_id, session, idempotency_key ?? null, now, input);
        return {
          receipt: { dispatch_id, accepted_at: isoTime(now) },
          place: { seq: Number(row?.seq), dispatch_id, agent, instance_id, session },
        };
      });
    },
  };
}

function full(): KitError {
  return new KitError({
    code: "unavailable",
    message: "Too much work is waiting. Try again later.",
    meta: { retry_after_s: 5 },
  });
}

function crowded(limit: number): KitError {
  return new KitError({
    code: "too_many_requests",
    message: `${limit} inputs are already waiting for this session.`,
    hint: "Spread the work over several sessions, or raise the engine's limit.",
    meta: { retry_after_s: 1 },
  });
}

function otherInput(): KitError {
  return new KitError({
    code: "conflict",
    message: "This idempotency key was used before, with another input.",
  });
}
