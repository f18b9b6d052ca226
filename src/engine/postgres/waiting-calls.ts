import type { ApprovalDecision, ApprovalRequest } from "../../protocol/approval.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { CallFilter, WaitingCalls } from "../cluster.ts";
import type { PostgresBase } from "./postgres-base.ts";

interface DecidedRow {
  readonly approval_id: string;
  readonly decision: string;
}

/**
 * Tool calls that wait for a decision: one row per call, which names the waiting node. Any node can write the decision into
 * the row, once. If the waiting node dies, the row keeps the decision for the node that resumes the work.
 */
export class WaitingCallRows implements WaitingCalls {
  readonly #base: PostgresBase;
  /** The calls of this node. */
  readonly #ownCalls = new Set<string>();
  #listener: Parameters<WaitingCalls["onDecided"]>[0] = () => undefined;

  constructor(base: PostgresBase) {
    this.#base = base;
  }

  async add(request: ApprovalRequest): Promise<ApprovalDecision | undefined> {
    const { approval_id, agent, instance_id, session, requested_at } = request;
    const row = await this.#base.database.row<{ decision: string | null }>(
      `INSERT INTO $s.approvals AS old (approval_id, agent, instance_id, session, requested_at, node, request, written_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
       ON CONFLICT (approval_id) DO UPDATE SET node = excluded.node, request = excluded.request
       RETURNING decision`,
      [
        approval_id,
        agent,
        instance_id,
        session,
        requested_at,
        this.#node,
        JSON.stringify(request),
        this.#base.clock.now(),
      ],
    );
    if (row?.decision == null) {
      this.#ownCalls.add(approval_id);
      return undefined;
    }
    await this.remove(approval_id);
    return JSON.parse(row.decision) as ApprovalDecision;
  }

  async remove(approvalId: string): Promise<ApprovalDecision | undefined> {
    this.#ownCalls.delete(approvalId);
    const row = await this.#base.database.row<{ decision: string | null }>(
      "DELETE FROM $s.approvals WHERE approval_id = $1 AND node = $2 RETURNING decision",
      [approvalId, this.#node],
    );
    return row?.decision == null ? undefined : (JSON.parse(row.decision) as ApprovalDecision);
  }

  async withdraw(approvalId: string): Promise<void> {
    this.#ownCalls.delete(approvalId);
    await this.#base.database.run(
      "DELETE FROM $s.approvals WHERE approval_id = $1 AND node = $2 AND decision IS NULL",
      [approvalId, this.#node],
    );
  }

  async leave(approvalId: string): Promise<void> {
    this.#ownCalls.delete(approvalId);
    await this.#base.database.run(
      "UPDATE $s.approvals SET node = '', written_at = $3 WHERE approval_id = $1 AND node = $2",
      [approvalId, this.#node, this.#base.clock.now()],
    );
  }

  async decide(approvalId: string, decision: ApprovalDecision, within: CallFilter): Promise<boolean> {
    const row = await this.#base.database.row(
      `UPDATE $s.approvals AS a SET decision = $5
       WHERE approval_id = $1 AND ($2::text IS NULL OR agent = $2) AND ($3::text IS NULL OR instance_id = $3)
         AND ($4::text IS NULL OR session = $4) AND decision IS NULL
         AND (a.node = '' OR a.node IN (SELECT node FROM $s.nodes)) RETURNING 1`,
      [approvalId, ...fieldsOf(within), JSON.stringify(decision)],
    );
    if (row === undefined) return false;
    if (this.#ownCalls.has(approvalId)) this.#listener(approvalId, decision);
    else this.#base.news.publish(["approval", approvalId]);
    return true;
  }

  async list(within: CallFilter): Promise<readonly ApprovalRequest[]> {
    const rows = await this.#base.database.rows<{ request: string }>(
      `SELECT request FROM $s.approvals
       WHERE decision IS NULL AND (node = '' OR node IN (SELECT node FROM $s.nodes)) AND ($1::text IS NULL OR agent = $1) AND ($2::text IS NULL OR instance_id = $2)
         AND ($3::text IS NULL OR session = $3)
       ORDER BY requested_at COLLATE "C", approval_id COLLATE "C"`,
      fieldsOf(within),
    );
    return rows.map(({ request }) => JSON.parse(request) as ApprovalRequest);
  }

  onDecided(listener: Parameters<WaitingCalls["onDecided"]>[0]): void {
    this.#listener = listener;
  }

  /** Handles the news that another node has decided a call. */
  onNews(approvalId: string): void {
    if (this.#ownCalls.has(approvalId)) void this.sweep().catch(() => undefined);
  }

  /** Finds decisions without news. */
  async sweep(): Promise<void> {
    if (this.#ownCalls.size === 0) return;
    const rows = await this.#base.database.rows<DecidedRow>(
      "SELECT approval_id, decision FROM $s.approvals WHERE node = $1 AND decision IS NOT NULL",
      [this.#node],
    );
    for (const { approval_id, decision } of rows)
      if (this.#ownCalls.has(approval_id))
        this.#listener(approval_id, JSON.parse(decision) as ApprovalDecision);
  }

  /** Deletes old calls of dead nodes that no other node has resumed. */
  async prune(before: number): Promise<void> {
    await this.#base.database.run(
      "DELETE FROM $s.approvals WHERE written_at < $1 AND node NOT IN (SELECT node FROM $s.nodes)",
      [before],
    );
  }

  get #node(): string {
    return this.#base.ownership.node;
  }
}

/** Deletes the waiting calls of work that was cancelled while no node ran it. Only one input of a session runs at a time, so all calls of the session belong to it. */
export async function forgetCalls(
  { database }: PostgresBase,
  work: SessionKey | { readonly run_id: string },
): Promise<void> {
  const { agent, instance_id, session, run_id } = { ...noFields, ...work };
  await database.run(
    `DELETE FROM $s.approvals WHERE node = '' AND CASE WHEN $4::text IS NULL
       THEN agent = $1 AND instance_id = $2 AND session = $3 ELSE request::json ->> 'run_id' = $4 END`,
    [agent, instance_id, session, run_id],
  );
}

const noFields = { agent: null, instance_id: null, session: null, run_id: null };

function fieldsOf({ agent, instance_id, session }: CallFilter): (string | null)[] {
  return [agent ?? null, instance_id ?? null, session ?? null];
}
