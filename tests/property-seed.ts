import fc from "fast-check";

/**
 * The seed of every property test of this run. By default it is a fixed number, so that only the change decides whether
 * tests pass; `npm run test:fuzz` draws others.
 */
const seed: number = Number(process.env.KIT_FUZZ_SEED ?? 20_261_121);

fc.configureGlobal({ seed });
