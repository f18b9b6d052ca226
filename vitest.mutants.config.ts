import { defineConfig, type ViteUserConfig } from "vitest/config";

/** The tests that `npm run test:mutants` runs: those of the rooms it is about. `scripts/mutants.ts` names them. */
const config: ViteUserConfig = defineConfig({
  test: {
    include: (process.env.KIT_MUTANT_TESTS ?? "src/**/*.test.ts").split(","),
    setupFiles: ["tests/property-seed.ts"],
    // A mutant that hangs ends here, and counts as noticed: before Stryker ends the whole process for it (`timeoutMS`).
    testTimeout: 10_000,
    hookTimeout: 10_000,
  },
});

export default config;
