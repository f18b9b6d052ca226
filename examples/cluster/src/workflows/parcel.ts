import { appendFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { defineWorkflow } from "kit";
import { z } from "zod";

const ways = ["pack", "carry", "ring"] as const;

/** Three short steps; the demo reads from the log which kit runs which step. */
export default defineWorkflow({
  payload: z.object({ number: z.int() }),
  async run({ step, payload: { number } }) {
    for (const way of ways) {
      await step(way, async () => {
        note({ number, way, what: "begin" });
        await delay(400);
        note({ number, way, what: "end" });
      });
    }
    return number;
  },
});

function note(line: object): void {
  const { CLUSTER_LOG } = process.env;
  if (CLUSTER_LOG !== undefined)
    appendFileSync(CLUSTER_LOG, `${JSON.stringify({ ...line, at: Date.now(), pid: process.pid })}\n`);
}
