import fc from "fast-check";

/**
 * The seed of every property test of this run. It is one number unless said otherwise, so that a change
 * passes or fails on what it is and not on the dice; `npm run test:fuzz` throws them.
 */
const seed: number = Number(process.env.KIT_FUZZ_SEED ?? 20_261_121);

fc.configureGlobal({ seed });
