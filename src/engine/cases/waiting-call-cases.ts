import assert from "node:assert/strict";
import type { ContractCase } from "../../base/contract-case.ts";
import { KitError } from "../../base/kit-error.ts";
import type { ApprovalRequest } from "../../protocol/approval.ts";
import type { Engine, WorkContext } from "../contract.ts";
import type { CallWait, CallWork, WaitingCall } from "../waiting-calls-contract.ts";
import {
  type EngineCheck,
  type EngineSubject,
  gate,
  handlers,
  sessionKey as key,
  toCases,
  untilAborted,
} from "./engine-check.ts";

/** The promises about calls that wait for a decision. An engine without such calls passes. */
export function waitingCallCases(subject: EngineSubject): readonly ContractCase[] {
  return toCases(subject, { fresh, lasting });
}

const approved = { approved: true, by: "ops" } as const;
const denied = { approved: false, by: "sam" } as const;

function request(approval_id: string, some: Partial<ApprovalRequest> = {}): ApprovalRequest {
  return {
    approval_id,
    ...key,
    operation_id: "op_1",
    tool_call_id: "call_1",
    tool: "pay",
    args: { euros: 5, to: "shop" },
    requested_at: "2026-01-01T00:00:01.000Z",
    ...some,
  };
}

/** The work of an attempt that asks again after a crash. */
function workOf({ id, fence }: WorkContext): CallWork {
  const owned = id.startsWith("run_") ? { run_id: id } : key;
  return { owned, fence, resumes: id };
}

async function ask(
  { waitingCalls }: Engine,
  call: WaitingCall,
  onDecided: (decision: unknown) => void = () => undefined,
): Promise<CallWait> {
  assert.ok(waitingCalls);
  return await waitingCalls.add(call, onDecided);
}

const listed = async ({ waitingCalls }: Engine, within = {}): Promise<readonly string[]> =>
  ((await waitingCalls?.list(within)) ?? []).map(({ approval_id }) => approval_id);

/** Begins a dispatch that asks for a decision about each request, and ends as `end` does. */
async function dispatched(
  engine: Engine,
  requests: readonly ApprovalRequest[],
  end: (context: WorkContext, waits: readonly CallWait[]) => Promise<unknown> = untilAborted,
): Promise<string> {
  const asked = gate();
  await engine.start(
    handlers({
      dispatch: async (context) => {
        const waits: CallWait[] = [];
        for (const one of requests) waits.push(await ask(engine, { request: one, work: workOf(context) }));
        asked.open();
        return await end(context, waits);
      },
    }),
  );
  const { dispatch_id } = await engine.admit({ ...key, input: 1 });
  await asked.opened;
  return dispatch_id;
}

/** Checks that a call neither waits nor can be decided. */
async function assertOver(engine: Engine, id: string): Promise<void> {
  assert.ok(!(await listed(engine)).includes(id));
  assert.equal(await engine.waitingCalls?.decide(id, approved), undefined);
}

const fresh: Readonly<Record<string, EngineCheck>> = {
  "waiting calls are listed in pages with their number, oldest first, and by session": async (tools) => {
    const engine = await tools.create();
    if (engine.waitingCalls?.page === undefined) return;
    const page = engine.waitingCalls.page.bind(engine.waitingCalls);
    const ids = ["approval_1", "approval_2", "approval_3"];
    const requested_at = "2026-01-01T00:00:02.000Z";
    const requests = ids.map((id, at) => request(id, at === 0 ? {} : { requested_at }));
    await dispatched(engine, requests.toReversed());
    const among = [{ ...key, session: "other" }, key, key];
    assert.deepEqual((await engine.waitingCalls.sessions?.(among)) ?? [key], [key]);
    const idsOf = async (listing: Parameters<typeof page>[0]): Promise<unknown> => {
      const { items, total } = await page(listing);
      return [items.map(({ approval_id }) => approval_id), total];
    };
    assert.deepEqual(await idsOf({ limit: 2 }), [["approval_1", "approval_2"], 3]);
    const after = { at: requested_at, id: "approval_2", position: 0 };
    assert.deepEqual(await idsOf({ limit: 2, after }), [["approval_3"], 3]);
    await engine.waitingCalls.decide("approval_1", approved);
    assert.deepEqual(await idsOf({ limit: 9 }), [["approval_2", "approval_3"], 2]);
  },

  "a waiting call is listed, oldest first, and decided once; a second sender gets the first decision": async (
    tools,
  ) => {
    const engine = await tools.create();
    if (engine.waitingCalls === undefined) return;
    const later = request("approval_2", { requested_at: "2026-01-01T00:00:02.000Z", session: "other" });
    const decisions: unknown[] = [];
    const reached = gate();
    const asked = gate();
    await engine.start(
      handlers({
        dispatch: async (context) => {
          await ask(engine, { request: later, work: workOf(context) });
          await ask(engine, { request: request("approval_1"), work: workOf(context) }, (decision) => {
            decisions.push(decision);
            reached.open();
          });
          asked.open();
          await untilAborted(context);
        },
      }),
    );
    await engine.admit({ ...key, input: 1 });
    await asked.opened;
    assert.deepEqual(await engine.waitingCalls.list(), [request("approval_1"), later]);
    assert.deepEqual(await listed(engine, { session: "other" }), ["approval_2"]);
    assert.equal(await engine.waitingCalls.decide("approval_1", approved, { agent: "other" }), undefined);
    assert.equal(await engine.waitingCalls.decide("approval_3", approved), undefined);
    const first = await engine.waitingCalls.decide("approval_1", denied, key);
    assert.deepEqual(first, { decision: denied, isFirst: true });
    await reached.opened;
    assert.deepEqual(decisions, [denied]);
    const second = await engine.waitingCalls.decide("approval_1", approved);
    assert.deepEqual(second, { decision: denied, isFirst: false });
    assert.deepEqual(await listed(engine), ["approval_2"]);
  },

  "of two decisions at the same moment, one counts": async (tools) => {
    const engine = await tools.create();
    if (engine.waitingCalls === undefined) return;
    await dispatched(engine, [request("approval_1")]);
    const answers = await Promise.all(
      [approved, denied].map((decision) => engine.waitingCalls?.decide("approval_1", decision)),
    );
    assert.equal(answers.filter((answer) => answer?.isFirst).length, 1);
    assert.deepEqual(answers[0]?.decision, answers[1]?.decision);
  },

  "a decision stays for an attempt that asks again, until its work has ended and after": async (tools) => {
    const engine = await tools.create({ backoffMs: 1 });
    if (engine.waitingCalls === undefined) return;
    const found: unknown[] = [];
    await engine.start(
      handlers({
        dispatch: async (context) => {
          const wait = await ask(engine, { request: request("approval_1"), work: workOf(context) });
          found.push(wait.decision);
          if (context.attempt === 1) await engine.waitingCalls?.decide("approval_1", denied);
          // As after a crash before the session's log has the decision.
          if (context.attempt < 3) throw new KitError({ code: "unavailable", message: "Again." });
        },
      }),
    );
    const { dispatch_id } = await engine.admit({ ...key, input: 1 });
    await engine.awaitDispatch(dispatch_id);
    assert.deepEqual(found, [undefined, denied, denied]);
    const second = await engine.waitingCalls.decide("approval_1", approved);
    assert.deepEqual(second, { decision: denied, isFirst: false });
  },

  "a decision counts only for the arguments that it was made about": async (tools) => {
    const engine = await tools.create();
    if (engine.waitingCalls === undefined) return;
    const found: unknown[] = [];
    await dispatched(engine, [request("approval_1")], async (context) => {
      await engine.waitingCalls?.decide("approval_1", approved);
      const inOtherOrder = request("approval_1", { args: { to: "shop", euros: 5 } });
      found.push((await ask(engine, { request: inOtherOrder, work: workOf(context) })).decision);
      const changed = request("approval_1", { args: { to: "shop", euros: 500 } });
      found.push((await ask(engine, { request: changed, work: workOf(context) })).decision);
      found.push(await engine.waitingCalls?.list());
    });
    const { items } = await engine.listDispatches();
    await engine.awaitDispatch(items[0]?.dispatch_id ?? "");
    const waiting = request("approval_1", { args: { to: "shop", euros: 500 } });
    assert.deepEqual(found, [approved, undefined, [waiting]]);
  },

  "a decision of the waiting process counts unless another was made before": async (tools) => {
    const engine = await tools.create();
    if (engine.waitingCalls === undefined) return;
    const late = { approved: false, reason: "It was not approved in time." };
    const settled: unknown[] = [];
    const id = await dispatched(
      engine,
      [request("approval_1"), request("approval_2")],
      async (_context, [one, two]) => {
        await engine.waitingCalls?.decide("approval_1", approved);
        settled.push(await one?.settle(late), await two?.settle(late));
      },
    );
    await engine.awaitDispatch(id);
    assert.deepEqual(settled, [approved, late]);
    assert.deepEqual(await engine.waitingCalls.decide("approval_2", approved), {
      decision: late,
      isFirst: false,
    });
  },

  "a withdrawn call is over, unless it was decided before": async (tools) => {
    const engine = await tools.create();
    if (engine.waitingCalls === undefined) return;
    await dispatched(engine, [request("approval_1"), request("approval_2")], async (context, [one, two]) => {
      await engine.waitingCalls?.decide("approval_1", approved);
      await one?.withdraw();
      await two?.withdraw();
      await engine.cancelDispatch(context.id);
      await untilAborted(context);
    });
    const { items } = await engine.listDispatches();
    await engine.awaitDispatch(items[0]?.dispatch_id ?? "");
    await assertOver(engine, "approval_2");
    assert.deepEqual(await engine.waitingCalls.decide("approval_1", denied), {
      decision: approved,
      isFirst: false,
    });
  },

  "a call ends with its dispatch: completed, failed after its last attempt, or cancelled": async (tools) => {
    const engine = await tools.create({ attempts: 2, backoffMs: 1 });
    if (engine.waitingCalls === undefined) return;
    const begun = gate();
    await engine.start(
      handlers({
        dispatch: async (context, { input }) => {
          await ask(engine, { request: request(`approval_${input}`), work: workOf(context) });
          if (input === "failed") throw new KitError({ code: "unavailable", message: "Again." });
          if (input === "completed") return;
          begun.open();
          await untilAborted(context);
        },
      }),
    );
    for (const input of ["completed", "failed"]) {
      const { dispatch_id } = await engine.admit({ ...key, input });
      assert.equal((await engine.awaitDispatch(dispatch_id))?.status, input);
      await assertOver(engine, `approval_${input}`);
    }
    const { dispatch_id } = await engine.admit({ ...key, input: "cancelled" });
    await begun.opened;
    assert.deepEqual(await listed(engine), ["approval_cancelled"]);
    await engine.cancelDispatch(dispatch_id);
    await assertOver(engine, "approval_cancelled");
  },

  "a call ends with its run": async (tools) => {
    const engine = await tools.create();
    if (engine.waitingCalls === undefined) return;
    const begun = gate();
    await engine.start(
      handlers({
        run: async (context, { payload }) => {
          await ask(engine, { request: request(`approval_${payload}`), work: workOf(context) });
          begun.open();
          if (payload === "cancelled") await untilAborted(context);
        },
      }),
    );
    const ended = await engine.startRun({ workflow: "pay", payload: "completed" });
    await engine.awaitRun(ended.run_id);
    await assertOver(engine, "approval_completed");
    const run = await engine.startRun({ workflow: "pay", payload: "cancelled" });
    await begun.opened;
    await engine.cancelRun(run.run_id);
    await assertOver(engine, "approval_cancelled");
  },

  "a redriven dispatch asks again": async (tools) => {
    const engine = await tools.create({ attempts: 1 });
    if (engine.waitingCalls === undefined) return;
    let times = 0;
    const again = gate();
    await engine.start(
      handlers({
        dispatch: async (context) => {
          await ask(engine, { request: request("approval_1"), work: workOf(context) });
          times += 1;
          if (times === 1) throw new Error("Broken.");
          again.open();
          await untilAborted(context);
        },
      }),
    );
    const { dispatch_id } = await engine.admit({ ...key, input: 1 });
    await engine.awaitDispatch(dispatch_id);
    await assertOver(engine, "approval_1");
    await engine.redrive(dispatch_id);
    await again.opened;
    assert.deepEqual(await listed(engine), ["approval_1"]);
  },

  "a call outside of the engine's work is listed and decided once while its process waits": async (tools) => {
    const engine = await tools.create();
    if (engine.waitingCalls === undefined) return;
    await engine.start(handlers({}));
    const later = request("approval_2", { requested_at: "2026-01-01T00:00:02.000Z", session: "other" });
    const withdrawn = await ask(engine, { request: later });
    const decisions: unknown[] = [];
    const wait = await ask(engine, { request: request("approval_1") }, (decision) =>
      decisions.push(decision),
    );
    assert.deepEqual(await engine.waitingCalls.list(), [request("approval_1"), later]);
    assert.deepEqual(await listed(engine, { session: "other" }), ["approval_2"]);
    assert.equal(await engine.waitingCalls.decide("approval_1", approved, { agent: "other" }), undefined);
    assert.deepEqual(await engine.waitingCalls.decide("approval_1", denied, key), {
      decision: denied,
      isFirst: true,
    });
    assert.deepEqual(await engine.waitingCalls.decide("approval_1", approved), {
      decision: denied,
      isFirst: false,
    });
    assert.deepEqual(decisions, [denied]);
    assert.deepEqual(await listed(engine), ["approval_2"]);
    assert.deepEqual(await wait.settle(approved), denied);
    await withdrawn.withdraw();
    await assertOver(engine, "approval_2");
  },

  "a call of work in line waits as long as the process holds the lease": async (tools) => {
    const engine = await tools.create();
    if (engine.waitingCalls === undefined) return;
    await engine.start(handlers({}));
    await engine.inLine(key, async ({ fence }) => {
      await ask(engine, { request: request("approval_1"), work: { owned: key, fence } });
      assert.deepEqual(await listed(engine), ["approval_1"]);
      await ask(engine, { request: request("approval_2"), work: { owned: key, fence: fence - 1 } }).catch(
        () => undefined,
      );
      assert.deepEqual(await listed(engine), ["approval_1"]);
    });
  },
};

const lasting: Readonly<Record<string, EngineCheck>> = {
  "a call of an open dispatch is listed and decided while no process works on it, and keeps its age and its decision":
    async (tools) => {
      const first = await tools.create();
      if (first.waitingCalls === undefined) return;
      const both = [request("approval_1"), request("approval_2")];
      await dispatched(first, both);
      await first.drain({ timeoutMs: 0 });
      const second = await tools.reopen();
      assert.deepEqual(await second.waitingCalls?.list(), both);
      assert.deepEqual(await second.waitingCalls?.decide("approval_1", denied), {
        decision: denied,
        isFirst: true,
      });
      await second.drain({ timeoutMs: 0 });
      const third = await tools.reopen();
      const again = gate();
      const found: unknown[] = [];
      await third.start(
        handlers({
          dispatch: async (context) => {
            for (const { approval_id } of both) {
              const repeated = request(approval_id, { requested_at: "2027-01-01T00:00:00.000Z" });
              found.push((await ask(third, { request: repeated, work: workOf(context) })).decision);
            }
            again.open();
            await untilAborted(context);
          },
        }),
      );
      await again.opened;
      assert.deepEqual(found, [denied, undefined]);
      assert.deepEqual(await third.waitingCalls?.list(), [request("approval_2")]);
    },

  "a call of work in line ends with its process": async (tools) => {
    const first = await tools.create();
    if (first.waitingCalls === undefined) return;
    await first.start(handlers({}));
    const asked = gate();
    const work = first.inLine(key, async (context) => {
      await ask(first, { request: request("approval_1"), work: { owned: key, fence: context.fence } });
      asked.open();
      await untilAborted(context);
    });
    await asked.opened;
    await Promise.all([first.drain({ timeoutMs: 0 }), work.catch(() => undefined)]);
    const second = await tools.reopen();
    await assertOver(second, "approval_1");
  },
};
