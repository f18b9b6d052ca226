// Runs the property tests with other inputs than those of `npm test`, round after round until one fails.
//   npm run test:fuzz              # ten rounds
//   npm run test:fuzz -- 100       # a hundred
//   KIT_FUZZ_SEED=7 npm test       # repeats a seed that failed here
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";

const rounds = Number(process.argv[2] ?? 10);
const files = globSync("{src,tests}/**/*.test.ts").filter((path) =>
  readFileSync(path, "utf8").includes('from "fast-check"'),
);

const projects = ["unit", "apart", "whole", "campaigns"].flatMap((name) => ["--project", name]);

for (let round = 1; round <= rounds; round += 1) {
  const seed = Math.floor(Math.random() * 2 ** 31);
  console.log(`round ${round} of ${rounds}: KIT_FUZZ_SEED=${seed}`);
  const { status } = spawnSync("vitest", ["run", "--reporter=minimal", ...projects, ...files], {
    env: { ...process.env, KIT_FUZZ_SEED: String(seed) },
    stdio: "inherit",
  });
  if (status !== 0) process.exit(1);
}
