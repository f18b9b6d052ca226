import { test } from "vitest";

const level = process.env.KIT_CAMPAIGN;

/** True in `npm run test:long`, which no run of CI has the time for: all cases, and all rounds of random ones. */
export const isLong: boolean = level === "long";

/** True in `npm run test:campaigns` and `npm run test:long`; `npm test` runs a selection of their cases. */
export const isCampaign: boolean = isLong || level === "1";

/** A test of `npm run test:campaigns`. `npm test` lists it as skipped, and runs a quicker test of the same promise. */
export const campaignTest: ReturnType<typeof test.runIf> = test.runIf(isCampaign);

/** A test of `npm run test:long`. A campaign lists it as skipped, and runs a quicker test of the same promise. */
export const longTest: ReturnType<typeof test.runIf> = test.runIf(isLong);

/** How many rounds a test runs: the smaller number in `npm test`, the larger one in `npm run test:long`, a fourth of it in a campaign. */
export function rounds(slice: number, whole: number): number {
  if (isLong) return whole;
  return isCampaign ? Math.max(slice, Math.ceil(whole / 4)) : slice;
}
