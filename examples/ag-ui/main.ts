/** `node main.ts [url]`: runs the desk at an address with the client of AG-UI; without one, it serves that of `../agents` on a free port. */
import { join } from "node:path";
import { HttpAgent } from "@ag-ui/client";
import { openProject, openService } from "kit";
import { createServer } from "kit/server";

await using closing = new AsyncDisposableStack();
const url = process.argv[2] ?? (await serveDesk());

async function serveDesk(): Promise<string> {
  const root = join(import.meta.dirname, "../agents");
  const project = closing.adopt(await openProject({ root }), (opened) => opened.close());
  const service = closing.adopt(await openService({ root }), (opened) => opened.close());
  const server = closing.adopt(createServer({ project, service }), (opened) => opened.close());
  return (await server.listen({ port: 0 })).url;
}

// The instance is the user, the thread is the chat.
const agent = new HttpAgent({ url: `${url}/agents/desk/ann/agui`, threadId: `chat-${Date.now()}` });

for (const content of ["Which rules apply to letters/2026-10-02.md?", "What affects tools/catalog.ts?"]) {
  console.log(`\n> ${content}\n`);
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
  await agent.runAgent(
    {},
    {
      onToolCallStartEvent: ({ event }) => console.log(`→ ${event.toolCallName}`),
      onTextMessageContentEvent({ event }) {
        process.stdout.write(event.delta);
      },
    },
  );
}
console.log(`\n\n${agent.messages.length} messages in the thread ${agent.threadId}`);
