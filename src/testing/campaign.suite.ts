import { test } from "vitest";

/** True in `npm run test:campaigns`, which runs the whole of what `npm test` runs a slice of. */
export const isCampaign: boolean = process.env.KIT_CAMPAIGN === "1";

/** A test of `npm run test:campaigns`; `npm test` lists it as skipped, and runs a quicker one of the same promise. */
export const campaignTest: ReturnType<typeof test.runIf> = test.runIf(isCampaign);

/** How often something is tried: the smaller number in `npm test`, the larger one in a campaign. */
export function rounds(slice: number, whole: number): number {
  return isCampaign ? whole : slice;
}
