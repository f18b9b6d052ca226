import { createPostgresEngine } from "../create-postgres-engine.ts";
import type { PostgresEngineOptions } from "../postgres-base.ts";

/**
 * A node in a process of its own, which a test freezes or kills: `fork(node-process.ts, [JSON of PostgresEngineOptions])`.
 * It sends the id of each dispatch and run that it begins. An input or payload "idle" only waits, "poison" ends the process,
 * and "slow" works for a while that no test waits for; "quick" ends at once; "busy" blocks the event loop for six seconds.
 */
const options = JSON.parse(String(process.argv[2])) as PostgresEngineOptions;
const engine = await createPostgresEngine(options);

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener("abort", () => reject(signal.reason), { once: true }),
  );
}

await engine.start({
  async dispatch({ id, signal, setIdle }, { input }) {
    process.send?.(id);
    if (input === "quick") return null;
    if (input === "busy") {
      const until = performance.now() + 6_000;
      while (performance.now() < until);
      return null;
    }
    if (input === "poison") process.kill(process.pid, "SIGKILL");
    if (input === "idle") setIdle?.(true);
    return await untilAborted(signal);
  },
  async run({ id, signal, releaseSlot, step }, { payload }) {
    process.send?.(id);
    await step("wait", async () => {
      if (payload === "poison") process.kill(process.pid, "SIGKILL");
      if (payload === "idle") releaseSlot();
      await untilAborted(signal);
    });
    return null;
  },
});
process.send?.("ready");
