import { globSync, readFileSync, statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative } from "node:path";
import { defineConfig, type TestProjectInlineConfiguration, type ViteUserConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { changedPaths, nearestTests, readImports } from "./scripts/nearest-tests.ts";

const campaigns = "**/*.campaign.test.ts";
const testFiles = globSync("{src,tests}/**/*.test.ts", { cwd: import.meta.dirname }).map((path) => ({
  path,
  text: readFileSync(join(import.meta.dirname, path), "utf8"),
}));
/** The campaign files, and the test files that run more of the same in a campaign. */
const inCampaign = testFiles
  .filter(({ path, text }) => path.endsWith(".campaign.test.ts") || text.includes("/campaign.suite.ts"))
  .map(({ path }) => path);
/**
 * The test files that run commands in a sandbox of this machine: without bubblewrap they skip some tests, and the others run their
 * commands without a wall. Those of the campaigns run again with them. The test of Neovim is skipped without Neovim.
 */
const inWall = testFiles
  .filter(
    ({ path, text }) =>
      !inCampaign.includes(path) && /\/(walled\.suite|local-sandbox)\.ts"|neovim\.lua/.test(text),
  )
  .map(({ path }) => path);
/**
 * Each has a process of its own: they measure the memory of their process, set its flags, fill it, or move its clock forward, which
 * the ids of later test files would follow.
 */
const apart = [
  "src/app/service/resting-work.test.ts",
  "src/base/id.test.ts",
  "src/cli/interrupt.test.ts",
  "src/client/socket.test.ts",
  "src/engine/embedded/runs/runs.test.ts",
  "src/engine/shared/queue/claim-cost.test.ts",
  "src/processes/bounded-output.test.ts",
  "src/server/collected-request.test.ts",
];
/** Small files with long suites. Vitest begins with the largest files, so that these would run alone at the end. */
const longSuites = [
  "src/engine/postgres/create-postgres-engine.campaign.test.ts",
  "src/engine/embedded/create-embedded-engine.test.ts",
  "src/sandboxes/local/local-sandbox.campaign.test.ts",
  "src/sandboxes/virtual/virtual-sandbox.campaign.test.ts",
  "src/sandboxes/e2b/e2b-requests.campaign.test.ts",
  "src/sandboxes/runloop/runloop-requests.campaign.test.ts",
  "src/sandboxes/host/wall/writing.campaign.test.ts",
  "src/project/scan/git/file-dates.campaign.test.ts",
  "src/app/verify/cheats.test.ts",
  "src/app/verify/honest-changes.test.ts",
  "src/app/verify/pytest-cheats.test.ts",
];

/** Test files of one run with `--changed`: nearly every module reaches nearly every test by some way. */
const mostNearest = 20;

/**
 * Begins with what takes longest, so that no processor is idle at the end of a run. With `--changed`, only the tests nearest to
 * the change are run, which takes seconds.
 */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const { changed } = this.ctx.config;
    if (changed !== undefined && changed !== false) return this.#nearest(sorted.toReversed(), changed);
    const [whole, beside] = split(sorted, ({ project }) => project.name !== "unit");
    const longFirst = (list: readonly TestSpecification[]): readonly TestSpecification[] =>
      split(list, ({ moduleId }) => longSuites.some((path) => moduleId.endsWith(path))).flat();
    return [...longFirst(whole), ...longFirst(beside)];
  }

  /** Deals the files by size and in turn, the long suites first, so that the shares of `.ci/run` take about as long. */
  override async shard(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { index, count } = this.ctx.config.shard ?? { index: 1, count: 1 };
    const size = ({ moduleId }: TestSpecification): number =>
      (longSuites.some((path) => moduleId.endsWith(path)) ? 1e9 : 0) + statSync(moduleId).size;
    return files
      .toSorted((one, other) => size(other) - size(one) || (one.moduleId < other.moduleId ? -1 : 1))
      .filter((_, rank) => rank % count === index - 1);
  }

  #nearest(files: readonly TestSpecification[], changed: string | true): TestSpecification[] {
    const root = import.meta.dirname;
    const nearest = nearestTests([...new Set(files.map(({ moduleId }) => relative(root, moduleId)))], {
      changed: changedPaths(root, changed === true ? undefined : changed),
      imports: readImports(root),
      most: mostNearest,
    });
    const left = files.length - nearest.length;
    if (left > 0)
      this.ctx.logger.log(
        `The ${mostNearest} test files nearest to the change; npm test runs ${left} more that import it.`,
      );
    return nearest.flatMap((path) => files.filter(({ moduleId }) => relative(root, moduleId) === path));
  }
}

function split<Item>(items: readonly Item[], isFirst: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}

/** So many rounds of faults take as much longer. */
const patience = Number(process.env.KIT_FAULT_ROUNDS ?? 1);
const setupFiles = ["tests/property-seed.ts", "tests/compile-cache.ts"];
const globalSetup = ["tests/build-once.ts"];
const withBrowser = [...globalSetup, "tests/browser/unpack-browser.ts"];

const testProjects = new Set(["unit", "apart", "whole"]);
/** `vitest run PATH` without a project runs those of `npm test`; the others build and install more. */
const namesProject = process.argv.some((argument) => argument.startsWith("--project"));

/**
 * The projects: `unit` beside the code, and `apart` of it; `whole`, which drives kit from outside (the command line, the packed package,
 * HTTP) and so takes longer; `walled`, the test files whose commands run inside bubblewrap where it is installed, for machines on which
 * it was missing before; `campaigns`, the full corpora and drives of which `npm test` runs a slice; `faults`, which
 * kills, starves and floods whole servers; `cluster`, which does so to several of them over one database; `targets`, which runs the outputs of `kit build`.
 */
const projects: TestProjectInlineConfiguration[] = [
  {
    extends: true,
    test: {
      name: "unit",
      include: ["{src,scripts,bench,console/src}/**/*.test.ts"],
      exclude: ["**/node_modules/**", campaigns, ...apart],
      setupFiles,
      // Files share a few processes: to start one and load kit takes longer than most files.
      isolate: false,
    },
  },
  { extends: true, test: { name: "apart", include: apart, setupFiles } },
  {
    extends: true,
    test: {
      name: "whole",
      include: ["tests/**/*.test.ts"],
      exclude: ["tests/faults/**", "tests/targets/**", "tests/cluster/**", campaigns],
      setupFiles,
      globalSetup: withBrowser,
    },
  },
  { extends: true, test: { name: "walled", include: inWall, setupFiles, isolate: false } },
  {
    extends: true,
    test: {
      name: "campaigns",
      testTimeout: 300_000 * patience,
      include: inCampaign,
      env: { KIT_CAMPAIGN: process.env.KIT_CAMPAIGN ?? "1" },
      setupFiles,
      globalSetup: withBrowser,
    },
  },
  {
    extends: true,
    test: {
      name: "faults",
      testTimeout: 120_000 * patience,
      include: ["tests/faults/**/*.test.ts"],
      setupFiles,
      globalSetup,
    },
  },
  {
    extends: true,
    test: {
      name: "cluster",
      testTimeout: 300_000,
      hookTimeout: 300_000,
      include: ["tests/cluster/**/*.test.ts"],
      exclude: [campaigns],
      setupFiles,
      globalSetup,
    },
  },
  {
    extends: true,
    test: {
      name: "targets",
      testTimeout: 180_000,
      hookTimeout: 240_000,
      include: ["tests/targets/**/*.test.ts"],
      setupFiles,
      globalSetup,
    },
  },
];

const config: ViteUserConfig = defineConfig({
  test: {
    // Ten times what a test takes on a quiet machine: a busy one is late, and one that hangs is told.
    testTimeout: 60_000 * patience,
    hookTimeout: 60_000,
    // The projects of the tests are those of their author; tests of trust unset it.
    env: { KIT_TRUST: "1" },
    // Half of a test is waiting: for a process, a disk, a time limit. Other workers take the processor meanwhile.
    maxWorkers: availableParallelism() * 2 + 1,
    sequence: { sequencer: LongestFirst },
    experimental: { viteModuleRunner: false },
    expect: { poll: { timeout: 30_000 } },
    projects: projects.filter(({ test }) => namesProject || testProjects.has(String(test?.name))),
  },
});

export default config;
