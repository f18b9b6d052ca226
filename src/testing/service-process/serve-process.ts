/**
 * A process that works for a project like `kit start`, until it is killed or drained.
 * Arguments: the root; "stuck" for a model that never answers a prompt with the word "slow"; and after how many
 * milliseconds of silence another process takes over. The environment can say when it dies. It receives calls as messages, and answers with
 * messages.
 */
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { SqliteSessionStore } from "../../stores/sqlite/sqlite-store.ts";
import { createScriptedModel } from "../scripted-model.ts";
import { createTestService, type TestService } from "../test-service.ts";
import type { ProcessCall } from "./service-process.ts";

const [root = "", mood, leaseMs] = process.argv.slice(2);

const model = createScriptedModel(
  ({ prompt }) => {
    const last = JSON.stringify(prompt.at(-1));
    appendFileSync(join(root, "model.log"), `${last}\n`);
    if (last.includes("use the tool") && prompt.at(-1)?.role === "user") {
      return {
        toolCalls: [{ name: "note", input: {} }],
        ...(last.includes("later") ? { delayMs: 500 } : {}),
      };
    }
    if (last.includes('"text":"book"')) return { toolCalls: [{ name: "book", input: {} }] };
    if (last.includes('"text":"locate"')) return { toolCalls: [{ name: "locate", input: {} }] };
    // The last message can be the result of an interrupted call, after which the model calls the tool again.
    for (const name of ["pay", "die"])
      if (JSON.stringify(prompt).includes(`"text":"${name}"`) && !last.includes("Paid."))
        return { toolCalls: [{ name, input: {} }] };
    if (last.includes("steered")) return { text: "Steered." };
    const isStuck = mood === "stuck" && JSON.stringify(prompt).includes("slow");
    return { text: "Done.", ...(isStuck ? { delayMs: 3_600_000 } : {}) };
  },
  { recordCalls: false },
);

/** `KIT_DIES_AT` names an append to the sessions, at which the process kills itself: `before 2`, `after 2`. */
const [when, number] = (process.env.KIT_DIES_AT ?? "").split(" ");
const store = new SqliteSessionStore({ file: join(root, "sessions.db") });
const append = store.append.bind(store);
let appends = 0;
store.append = (request) => {
  appends += 1;
  const isLast = appends === Number(number);
  if (isLast && when === "before") dieNow();
  const written = append(request);
  if (isLast) dieNow();
  return written;
};

function dieNow(): never {
  process.kill(process.pid, "SIGKILL");
  // The signal may take a moment to arrive: nothing happens until then.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  throw new Error("The process goes on.");
}

const service = await createTestService(
  {
    root,
    model,
    store,
    engineFolder: join(root, "engine"),
    env: { ROOT: root },
  },
  leaseMs === undefined ? {} : { leaseMs: Number(leaseMs) },
);

const answers: Record<string, (service: TestService, args: readonly never[]) => unknown> = {
  dispatch: ({ dispatch }, args) => dispatch(...(args as unknown as Parameters<typeof dispatch>)),
  prompt: ({ prompt }, args) => prompt(...(args as unknown as Parameters<typeof prompt>)),
  startRun: ({ startRun }, args) => startRun(...(args as unknown as Parameters<typeof startRun>)),
  history: ({ history }, args) => history(...(args as unknown as Parameters<typeof history>)),
  historyPage: ({ historyPage }, [target]) =>
    historyPage(target ?? { agent: "", instance_id: "", session: "" }, { limit: 9 }),
  events: ({ engine }, [stream]) => engine.events.read(stream ?? ""),
  cancelDispatch: ({ engine }, [dispatchId]) => engine.cancelDispatch(dispatchId ?? ""),
  signal: ({ engine }, [runId, signal]) => engine.signal(runId ?? "", signal ?? { name: "" }),
  awaitRun: ({ engine }, [runId]) => engine.awaitRun(runId ?? ""),
  awaitDispatch: ({ engine }, [dispatchId]) => engine.awaitDispatch(dispatchId ?? ""),
  approvals: ({ approvals }) => approvals.list(),
  waitingCalls: async ({ engine }) => (await engine.waitingCalls?.list({})) ?? [],
  approve: ({ approvals }, [approvalId, result]) =>
    approvals.decide(approvalId ?? "", { approved: true, ...(result !== undefined && { result }) }),
  drain: async ({ close }) => {
    await close({ timeoutMs: 0 });
    process.disconnect?.();
  },
};

async function answer(method: string, args: readonly never[]): Promise<unknown> {
  return await answers[method]?.(service, args);
}

process.on("message", ({ id, method, args }: ProcessCall) => {
  answer(method, args as readonly never[]).then(
    (value) => process.send?.({ id, value }),
    (error: unknown) => process.send?.({ id, error: String(error) }),
  );
});
process.send?.({ ready: true });
