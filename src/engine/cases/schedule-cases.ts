import assert from "node:assert/strict";
import type { ContractCase } from "../../base/contract-case.ts";
import type { RunRequest } from "../contract.ts";
import { type EngineCheck, type EngineSubject, handlers, toCases } from "./engine-check.ts";

/** The promises about schedules. */
export function scheduleCases(subject: EngineSubject): readonly ContractCase[] {
  return toCases(subject, { fresh, lasting });
}

const fresh: Readonly<Record<string, EngineCheck>> = {
  "a schedule is put, replaced, listed by name, and deleted": async (tools) => {
    const engine = await tools.create();
    const put = await engine.putSchedule({ name: "weekly", workflow: "report", cron: "0 9 * * MON" });
    assert.match(put.next_at ?? "", /T09:00:00\.000Z$/);
    assert.equal(new Date(put.next_at ?? "").getUTCDay(), 1);
    const daily = {
      name: "daily",
      workflow: "clean",
      cron: "30 6 * * *",
      timezone: "Asia/Kolkata",
      payload: { deep: true },
    };
    const { next_at, ...rest } = await engine.putSchedule(daily);
    assert.deepEqual(rest, daily);
    assert.match(next_at ?? "", /T01:00:00\.000Z$/);
    assert.deepEqual(await engine.listSchedules(), [{ ...daily, next_at }, put]);
    const replaced = await engine.putSchedule({ name: "weekly", workflow: "digest", cron: "0 9 * * TUE" });
    assert.equal(new Date(replaced.next_at ?? "").getUTCDay(), 2);
    assert.deepEqual((await engine.listSchedules())[1], replaced);
    assert.equal(await engine.deleteSchedule("weekly"), true);
    assert.equal(await engine.deleteSchedule("weekly"), false);
    assert.equal((await engine.listSchedules()).length, 1);
  },

  "an invalid expression or time zone is refused": async (tools) => {
    const engine = await tools.create();
    const schedule = { name: "s", workflow: "w" };
    for (const cron of ["", "never", "61 * * * *", "* * * *", "* * * * * * *", "2026-12-01T00:00:00"]) {
      await assert.rejects(engine.putSchedule({ ...schedule, cron }), { code: "invalid_request" });
    }
    const timezone = "Mars/Olympus";
    await assert.rejects(engine.putSchedule({ ...schedule, cron: "* * * * *", timezone }), {
      code: "invalid_request",
    });
    assert.deepEqual(await engine.listSchedules(), []);
  },

  "a run starts at its time, with the payload of the schedule": async (tools) => {
    const engine = await tools.create();
    const begun = Promise.withResolvers<RunRequest>();
    await engine.start(handlers({ run: async (_, request) => begun.resolve(request) }));
    const schedule = { name: "often", workflow: "tick", cron: "* * * * * *", payload: { n: 1 } };
    const { next_at } = await engine.putSchedule(schedule);
    assert.deepEqual(await begun.promise, {
      workflow: "tick",
      payload: { n: 1 },
      idempotency_key: `schedule:often:${next_at}`,
    });
    const { items } = await engine.listRuns();
    assert.deepEqual(items.at(-1)?.cause, { type: "schedule", schedule: "often" });
  },
};

const lasting: Readonly<Record<string, EngineCheck>> = {
  "schedules survive a restart": async (tools) => {
    const engine = await tools.create();
    const put = await engine.putSchedule({ name: "weekly", workflow: "report", cron: "0 9 * * MON" });
    await engine.drain();
    const again = await tools.reopen();
    assert.deepEqual(await again.listSchedules(), [put]);
  },
};
