import { defineConfig, type ViteUserConfig } from "vitest/config";

/** What `npm run test:mutants` runs: the tests beside the code, and no others. A packed kit takes a minute to build. */
const config: ViteUserConfig = defineConfig({
  test: {
    include: ["src/**/*.test.ts"],
    setupFiles: ["tests/property-seed.ts"],
    // A mutant that hangs ends here, and counts as noticed.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});

export default config;
