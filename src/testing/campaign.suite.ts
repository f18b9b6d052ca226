/** True in `npm run test:campaigns`, which runs the whole of what `npm test` runs a slice of. */
export const isCampaign: boolean = process.env.KIT_CAMPAIGN === "1";

/** How often something is tried: the smaller number in `npm test`, the larger one in a campaign. */
export function rounds(slice: number, whole: number): number {
  return isCampaign ? whole : slice;
}
