import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { postgresForTests } from "../testing/postgres-for-tests.ts";
import { handlers, sessionKey, untilAborted } from "./cases/engine-check.ts";
import type { Engine } from "./contract.ts";
import { createEmbeddedEngine } from "./embedded/create-embedded-engine.ts";
import { createPostgresEngine } from "./postgres/create-postgres-engine.ts";

const root = mkdtempSync(join(tmpdir(), "kit-former-"));
const server = postgresForTests();

afterAll(() => {
  rmSync(root, { recursive: true });
});

interface Subject {
  open(): Promise<Engine>;
  /** Leaves the data as the version before the columns and indexes of lists wrote it. */
  makeFormer(): Promise<void>;
}

const withoutLists = (schema: string): string => `DROP INDEX ${schema}waiting_calls_by_session;
  DROP INDEX ${schema}runs_by_time; DROP INDEX ${schema}dispatches_by_time;
  ALTER TABLE ${schema}run_journal DROP COLUMN begun_at;`;

const subjects: Readonly<Record<string, () => Subject>> = {
  SQLite: () => ({
    open: async () => createEmbeddedEngine({ folder: root }),
    async makeFormer() {
      const database = new DatabaseSync(join(root, "engine.db"));
      database.exec(`${withoutLists("")} PRAGMA user_version = 14;`);
      database.close();
    },
  }),
  Postgres: () => ({
    open: () => createPostgresEngine({ url: server.url, schema: "former" }),
    async makeFormer() {
      const admin = new pg.Client({ connectionString: server.url });
      await admin.connect();
      await admin.query(
        `${withoutLists("former.")} DELETE FROM former.engine_migrations WHERE version > 15;`,
      );
      await admin.end();
    },
  }),
};

test.each(Object.entries(subjects))(
  "lists of %s are right for work that the former version has stored",
  async (...[, create]) => {
    const { open, makeFormer } = create();
    const first = await open();
    onTestFinished(() => first.drain({ timeoutMs: 0 }));
    const listed = async (engine: Engine) => ({
      signals: await engine.listWaitingSignals?.({ limit: 9 }),
      sessions: await engine.waitingCalls?.sessions?.(),
      calls: (await engine.waitingCalls?.page?.({ limit: 9 }))?.total,
    });
    await first.start(
      handlers({
        run: async ({ waitFor }) => await waitFor("approval"),
        async dispatch({ id, fence, signal }) {
          const request = {
            ...{ ...sessionKey, approval_id: "approval_1", operation_id: "op_1", tool_call_id: "call_1" },
            ...{ tool: "pay", args: {}, requested_at: "2026-01-01T00:00:01.000Z" },
          };
          await first.waitingCalls?.add(
            { request, work: { owned: sessionKey, fence, resumes: id } },
            () => undefined,
          );
          await untilAborted({ signal });
        },
      }),
    );
    const { run_id, accepted_at } = await first.startRun({ workflow: "deploy", payload: {} });
    const { dispatch_id } = await first.admit({ ...sessionKey, input: 1 });
    await expect
      .poll(() => listed(first))
      .toMatchObject({ signals: { total: 1 }, sessions: [sessionKey], calls: 1 });
    const run = await first.getRun(run_id);
    await first.drain({ timeoutMs: 0 });
    await makeFormer();
    const next = await open();
    onTestFinished(() => next.drain({ timeoutMs: 0 }));
    // The former version has not stored when a wait began.
    const wait = { run_id, workflow: "deploy", signal: "approval", requested_at: run?.started_at };
    expect(await listed(next)).toMatchObject({
      signals: { items: [wait], total: 1 },
      sessions: [sessionKey],
      calls: 1,
    });
    const at = Date.parse(accepted_at);
    for (const [filter, total] of [
      [{ since: at, until: Date.now() + 1_000 }, 1],
      [{ until: at }, 0],
    ] as const) {
      expect((await next.listRuns({ ...filter, count: true })).total).toBe(total);
      expect((await next.listDispatches({ ...filter, count: true })).total).toBe(total);
    }
    await next.start(handlers({ run: async ({ waitFor }) => await waitFor("approval") }));
    await next.signal(run_id, { name: "approval", payload: "yes" });
    expect(await next.awaitRun(run_id)).toMatchObject({ status: "completed", result: "yes" });
    expect(await next.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed" });
    expect(await listed(next)).toMatchObject({ signals: { total: 0 }, sessions: [], calls: 0 });
  },
);
