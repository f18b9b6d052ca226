/** How long a model thinks before it answers; each provider's own setting is derived from it. */
export const thinkingLevels = ["off", "minimal", "low", "medium", "high", "xhigh"] as const;
export type ThinkingLevel = (typeof thinkingLevels)[number];
