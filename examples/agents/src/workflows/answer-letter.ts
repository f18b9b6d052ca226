import { defineWorkflow } from "kit";
import { z } from "zod";
import desk from "../agents/desk.ts";

const Answer = z.object({
  topic: z.enum(["order", "return", "question"]),
  answer: z.string(),
  refund_cents: z.number().int().min(0),
});

/** kit run answer-letter --payload '{"letter": "…", "customer": "ann"}' */
export default defineWorkflow({
  payload: z.object({ letter: z.string(), customer: z.string().default("unknown") }),
  result: Answer,
  async run(ctx) {
    const { letter, customer } = ctx.payload;
    const agent = await ctx.init(desk, { id: customer });
    const session = agent.session("letters");
    const { result, usage } = await session.skill("answer-letter", {
      args: { letter },
      role: "careful",
      result: Answer,
      budget: { maxTurns: 12 },
    });
    ctx.log.info("Drafted", { topic: result.topic, tokens: usage.total_tokens });
    return result;
  },
});
