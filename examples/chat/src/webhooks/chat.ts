import { KitError } from "kit";
import { defineWebhook } from "kit/webhooks";
import { z } from "zod";

/** The body that the chat delivers for each new message, including the agent's own. */
const Delivery = z.object({
  message: z.object({
    thread: z.string().regex(/^[\w-]{1,64}$/),
    author: z.string(),
    from_bot: z.boolean(),
    text: z.string().min(1),
  }),
});

/** POST /webhooks/chat: a sender that signs with CHAT_SECRET passes a message of a thread to the agent. */
export default defineWebhook({
  scheme: "standard",
  secret: (env) => env.CHAT_SECRET,
  async handle({ payload, dispatch }) {
    const delivery = Delivery.safeParse(payload);
    if (!delivery.success) {
      throw new KitError({
        code: "invalid_request",
        message: "This is not a message of the chat.",
        cause: delivery.error,
      });
    }
    const { thread, author, from_bot, text } = delivery.data.message;
    // Without this line the agent would answer its own messages endlessly.
    if (from_bot) return;
    // kit derives the idempotency key from the delivery's id, so a repeated delivery is processed once.
    await dispatch("support", { id: thread, input: `${author}: ${text}` });
  },
});
