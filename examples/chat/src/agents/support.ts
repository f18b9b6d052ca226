import { createAgent, defineTool } from "kit";
import { z } from "zod";

/**
 * One instance for each thread, with the thread's id. It declares no triggers, so that `kit start` serves it to
 * no client; only the webhook can reach it.
 */
export default createAgent(({ id: thread, env }) => ({
  description: "Answers customers in the threads of a chat.",
  instructions: `You are the support of a shop that sells lamps. What customers write reaches you one message at a time.
They see nothing of what you say but what you send with the tool \`reply\`: send one message for each of theirs.`,
  tools: [
    defineTool({
      name: "reply",
      description: "Sends a message to the customer.",
      // The thread is not an argument, so a customer's text cannot make the model post elsewhere.
      input: z.object({ text: z.string().min(1).max(4_000) }),
      // The chat recognizes the key of a message that it already has, so that a retry is safe.
      idempotent: true,
      async execute({ text }, { idempotencyKey, signal }) {
        const response = await fetch(`${env.CHAT_URL}/messages`, {
          method: "POST",
          headers: {
            authorization: `Bearer ${env.CHAT_TOKEN}`,
            "content-type": "application/json",
            "idempotency-key": idempotencyKey,
          },
          body: JSON.stringify({ thread, text }),
          signal,
        });
        return response.ok ? "Sent." : { isError: true, content: `The chat answered ${response.status}.` };
      },
    }),
  ],
}));
