import { defineConfig, type ViteUserConfig } from "vitest/config";

/**
 * Three projects: `unit` beside the code; `whole`, which drives kit from outside (the command line, the packed package,
 * HTTP) and so takes longer; `faults`, the campaign that kills, starves and floods whole servers: `npm run test:faults`.
 */
const config: ViteUserConfig = defineConfig({
  test: {
    // Far longer than anything takes: a machine that is busy or slow is late, and not wrong.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // Much of a test is waiting: for a process, a disk, a time limit. One processor less idles half of the time.
    maxWorkers: "100%",
    experimental: { viteModuleRunner: false },
    expect: { poll: { timeout: 60_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "scripts/**/*.test.ts", "bench/**/*.test.ts"],
          setupFiles: ["tests/property-seed.ts"],
        },
      },
      {
        extends: true,
        test: {
          name: "whole",
          include: ["tests/**/*.test.ts"],
          exclude: ["tests/faults/**"],
          setupFiles: ["tests/property-seed.ts"],
          globalSetup: ["tests/build-once.ts"],
        },
      },
      {
        extends: true,
        test: {
          name: "faults",
          include: ["tests/faults/**/*.test.ts"],
          setupFiles: ["tests/property-seed.ts"],
          globalSetup: ["tests/build-once.ts"],
        },
      },
    ],
  },
});

export default config;
