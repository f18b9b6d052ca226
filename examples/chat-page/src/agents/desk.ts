import { createAgent, defineTool } from "kit";
import { z } from "zod";
import { deskModel } from "../desk-model.ts";

/** Served at `/agents/desk/{id}`, so also to chat pages, to OpenAI's clients and to AG-UI. */
export const triggers = { webhook: true };

const orders: Readonly<Record<string, string>> = {
  "4711": "one brass reading lamp, 49.00 EUR, delivered on 20 November",
  "4712": "two paper shades, 18.00 EUR, on its way",
};

const findOrder = defineTool({
  name: "find_order",
  description: "Finds an order by its number.",
  input: z.object({ order: z.string() }),
  execute: ({ order }) => orders[order] ?? `There is no order ${order}.`,
});

const refund = defineTool({
  name: "refund",
  description: "Pays money back for an order.",
  input: z.object({ order: z.string(), cents: z.number().int().positive() }),
  needsApproval: true,
  execute: ({ order, cents }) => `Paid ${(cents / 100).toFixed(2)} EUR back for order ${order}.`,
});

const wrap = defineTool({
  name: "wrap",
  description: "Wraps an order as a gift. Asks the customer for the text of the card.",
  input: z.object({ order: z.string() }),
  async execute({ order }, { ask }) {
    const answer = await ask({
      message: `What should the card of order ${order} say?`,
      schema: z.object({
        text: z.string().min(1).describe("Text of the card"),
        paper: z.enum(["blue", "brown"]).describe("Paper"),
        express: z.boolean().describe("Send it today"),
      }),
    });
    if (answer.action !== "accept") return `Order ${order} stays as it is.`;
    const { text, paper, express } = answer.value;
    return `Wrapped order ${order} in ${paper} paper with “${text}”${express ? ", and sent it today" : ""}.`;
  },
});

/** `CHAT_MODEL` is a model's name, such as `anthropic/claude-sonnet-4-5`; without it a script answers. */
export default createAgent(({ env }) => ({
  description: "Answers the customers of a lamp shop.",
  instructions: "You help the customers of a shop that sells lamps. Ask for the number of an order.",
  model: env.CHAT_MODEL ?? deskModel,
  tools: [findOrder, refund, wrap],
  builtInTools: false,
}));
