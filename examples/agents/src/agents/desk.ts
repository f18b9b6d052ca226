import { createAgent } from "kit";
import { catalog } from "../../tools/catalog.ts";

/** `kit start` serves it at POST /agents/desk/{id}. */
export const triggers = { webhook: true };

/** Answers customers: looks articles up, computes with Python, hands research to a subagent. */
export default createAgent((ctx) => ({
  description: "Answers the letters of customers.",
  instructions: `You answer letters for the bookshop, now those of customer ${ctx.id}.
Compute amounts with run_code, never in your head. Hand questions about earlier letters to the archivist.`,
  tools: [catalog],
  python: {
    functions: {
      discounted: {
        signature: "discounted(cents: int, percent: int) -> int",
        description: "The price less a discount, rounded the way the shop rounds.",
        execute: ({ args: [cents, percent] }) => Math.floor((Number(cents) * (100 - Number(percent))) / 100),
      },
    },
    resourceLimits: { maxDurationSecs: 5 },
  },
  subagents: [
    {
      name: "archivist",
      description: "Finds what was written before, and quotes it.",
      instructions: "Search letters/. Quote the line, with its file. If there is none, say so.",
      guidelines: false,
    },
  ],
}));
