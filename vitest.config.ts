import { defineConfig, type ViteUserConfig } from "vitest/config";

/**
 * Two projects: `unit` beside the code, and `whole`, which drives kit from outside (the command line,
 * the packed package, HTTP) and so takes longer. `vitest run --project unit` is the quick loop.
 */
const config: ViteUserConfig = defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "scripts/**/*.test.ts", "bench/**/*.test.ts"],
          setupFiles: ["tests/property-seed.ts"],
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: "whole",
          include: ["tests/**/*.test.ts"],
          setupFiles: ["tests/property-seed.ts"],
          globalSetup: ["tests/build-once.ts"],
          testTimeout: 120_000,
          hookTimeout: 300_000,
        },
      },
    ],
  },
});

export default config;
