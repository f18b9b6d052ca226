/**
 * Kills `kit run --spec` with SIGKILL at every boundary of a step and at random moments, lets the next process end the run, and checks that
 * each task has one commit and one tick. `node scripts/kill-spec-runs.ts [--rounds 50] [--seed 1]` takes about half a minute per round.
 */
import { parseArgs } from "node:util";
import { type Kill, runWithKills } from "../src/app/spec-run/testing/killed-runs.ts";
import type { SpecRunBody } from "../src/protocol/spec-run.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "50" },
    seed: { type: "string", default: "1" },
    boundaries: { type: "boolean", default: true },
  },
  allowNegative: true,
});
const one: SpecRunBody = { feature: "cart", agent: "hurried", tasks: ["1.1"] };
const two: SpecRunBody = { feature: "cart", agent: "hurried", tasks: ["1.1", "1.2"], parallel: 2 };

let state = Number(values.seed) >>> 0;
/** Numbers from 0 up to 1 by a linear congruential generator, so that a seed repeats a campaign. */
function random(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
}

let faults = 0;
let rounds = 0;
let kills = 0;
async function round(name: string, body: SpecRunBody, plan: readonly Kill[]): Promise<number> {
  const began = performance.now();
  const { fault, boundaries, ...run } = await runWithKills(body, plan).catch((error: unknown) => ({
    fault: String(error),
    kills: 0,
    boundaries: 0,
  }));
  rounds += 1;
  kills += run.kills;
  if (fault !== undefined) faults += 1;
  const seconds = ((performance.now() - began) / 1_000).toFixed(0);
  process.stdout.write(`${name}: ${run.kills} kills, ${seconds} s, ${fault ?? "kept its promise"}\n`);
  return boundaries;
}

const boundaries = await round("without a kill", one, []);
if (values.boundaries)
  for (let at = 1; at <= boundaries; at += 1) await round(`at boundary ${at}`, one, [{ atBoundary: at }]);
for (let number = 1; number <= Number(values.rounds); number += 1) {
  const plan = Array.from({ length: 1 + Math.floor(random() * 3) }, () => ({
    afterMs: Math.round(700 + random() * 15_000),
  }));
  const body = number % 2 === 0 ? two : one;
  await round(`round ${number}, ${plan.map(({ afterMs }) => afterMs).join(" ")} ms`, body, plan);
}
process.stdout.write(`${rounds} rounds, ${kills} kills, ${faults} faults.\n`);
process.exitCode = faults === 0 ? 0 : 1;
