import { useState } from "react";
import { asked, useClient } from "../../api/use-server.ts";
import type { Picture } from "./conversation.ts";
import type { SessionName } from "./use-conversation.ts";

export interface Sender {
  /** Sends a message. The server stores it before it works on it. Resolves to false if the server has not taken it. */
  readonly send: (message: string, images?: readonly Picture[]) => Promise<boolean>;
  /** The number of messages on their way. */
  readonly sending: number;
  readonly problem: string | undefined;
}

/** Sends messages to a session. */
export function useSend({ agent, id, session }: SessionName): Sender {
  const client = useClient();
  const [sending, setSending] = useState(0);
  const [problem, setProblem] = useState<string>();
  async function send(message: string, images: readonly Picture[] = []): Promise<boolean> {
    setProblem(undefined);
    setSending((count) => count + 1);
    // The history names an image by its address if it was sent so.
    const sent = images.map(({ data, media_type }) =>
      data.startsWith("https:") ? { url: data } : { data, media_type },
    );
    const body = { id, session, message, ...(sent.length > 0 && { images: sent }) };
    try {
      // With a key the prompt is on the server's disk and continues without this page, which shows the events of the session.
      const stream = client.agents.stream(agent, body, { idempotencyKey: crypto.randomUUID() });
      await asked(client, async () => {
        for await (const _ of stream) break;
      });
      return true;
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
      return false;
    } finally {
      setSending((count) => count - 1);
    }
  }
  return { send, sending, problem };
}
