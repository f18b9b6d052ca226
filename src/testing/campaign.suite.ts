import { test } from "vitest";

/** True in `npm run test:campaigns`, which runs all cases; `npm test` runs a selection of them. */
export const isCampaign: boolean = process.env.KIT_CAMPAIGN === "1";

/** A test of `npm run test:campaigns`. `npm test` lists it as skipped, and runs a quicker test of the same promise. */
export const campaignTest: ReturnType<typeof test.runIf> = test.runIf(isCampaign);

/** How many rounds a test runs: the smaller number in `npm test`, the larger one in a campaign. */
export function rounds(slice: number, whole: number): number {
  return isCampaign ? whole : slice;
}
