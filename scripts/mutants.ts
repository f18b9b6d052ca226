// Changes the code in small ways, one at a time, and reports each change that no test of its room notices.
//   npm run test:mutants                                         # the rooms below: hours
//   npm run test:mutants -- src/server/access                    # one room
//   npm run test:mutants -- src/agents/policy/check-command.ts   # one file: minutes
//   npm run test:mutants -- src/specs/model/scenario.ts:20-60         # some lines of it
// The first call installs Stryker separately from package.json: its 140 packages would slow down each `npm ci`.
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";

const version = "10.1.1";
const stryker = [`@stryker-mutator/core@${version}`, `@stryker-mutator/vitest-runner@${version}`];

/** The rooms that decide: the meaning of specs and rules, the rights of agents, stored work, access. */
const rooms = [
  { code: "src/specs", tests: "src/specs" },
  { code: "src/guidelines", tests: "src/guidelines" },
  { code: "src/agents/policy", tests: "src/agents/policy" },
  // Tests run a turn through the agents.
  { code: "src/agents/turn", tests: "src/agents" },
  { code: "src/engine", tests: "src/engine" },
  { code: "src/server/access", tests: "src/server/access" },
];

const asked = process.argv.slice(2).map((path) => path.replace(/\/+$/, ""));
const mutated = asked.length > 0 ? asked : rooms.map(({ code }) => code);
for (const path of mutated) {
  const file = path.replace(/:[\d:-]+$/, "");
  const found = statSync(file, { throwIfNoEntry: false }) !== undefined;
  if (found && rooms.some((room) => holds(room, path))) continue;
  const names = rooms.map(({ code }) => code).join(", ");
  console.error(found ? `${file} is in none of the rooms ${names}.` : `There is no ${file}.`);
  process.exit(2);
}

if (!existsSync("node_modules/@stryker-mutator/core")) {
  const flags = ["--no-save", "--no-audit", "--no-fund", "--ignore-scripts"];
  const installed = spawnSync("npm", ["install", ...flags, ...stryker], { stdio: "inherit" });
  if (installed.status !== 0) process.exit(installed.status ?? 1);
}

// Commas separate the list, so no glob contains one.
const mutate = [
  ...mutated.map((path) => (/\.ts(:|$)/.test(path) ? path : `${path}/**/*.ts`)),
  ...["!src/**/*.test.ts", "!src/**/*.suite.ts", "!src/**/testing/**", "!src/engine/cases/**"],
];
const testFiles = rooms
  .filter((room) => mutated.some((path) => holds(room, path)))
  .map(({ tests }) => `${tests}/**/*.test.ts`);
const { status } = spawnSync("stryker", ["run", "--mutate", mutate.join(",")], {
  // Not `--testFiles`: with it, Stryker applies a change after modules are loaded, and misses changes of constants.
  env: { ...process.env, KIT_MUTANT_TESTS: testFiles.join(",") },
  stdio: "inherit",
});
process.exit(status ?? 1);

function holds({ code }: { readonly code: string }, path: string): boolean {
  return `${path}/`.startsWith(`${code}/`);
}
