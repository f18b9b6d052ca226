/**
 * `npm run test:cluster` tests several `kit start` over one Postgres, under faults. `--long` continues with random faults for
 * thirty minutes, `--minutes N` for N minutes. `--seed N` repeats the faults of a run that printed the seed. `--engine restate` has Restate
 * call the nodes, with the server of `npm run test:vendors`. `--shard 1/3` runs a third of the files. Further arguments go to vitest.
 */
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  options: {
    long: { type: "boolean", default: false },
    minutes: { type: "string" },
    seed: { type: "string" },
    engine: { type: "string" },
    shard: { type: "string" },
  },
  allowPositionals: true,
});
const minutes = values.minutes ?? (values.long ? "30" : undefined);
const shard = values.shard === undefined ? [] : [`--shard=${values.shard}`];
const { status } = spawnSync("vitest", ["run", "--project", "cluster", ...shard, ...positionals], {
  stdio: "inherit",
  env: {
    ...process.env,
    ...(minutes === undefined ? {} : { KIT_CLUSTER_MINUTES: minutes }),
    ...(values.engine === undefined ? {} : { KIT_CLUSTER_ENGINE: values.engine }),
    ...(values.seed === undefined ? {} : { KIT_CLUSTER_SEED: values.seed }),
  },
});
process.exitCode = status ?? 1;
