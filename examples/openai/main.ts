/** `node main.ts [url]`: calls the desk at an address with OpenAI's client; without one, it serves that of `../agents` on a free port. */
import { join } from "node:path";
import { openProject, openService } from "kit";
import { createServer } from "kit/server";
import OpenAI from "openai";

await using closing = new AsyncDisposableStack();
const url = process.argv[2] ?? (await serveDesk());

async function serveDesk(): Promise<string> {
  const root = join(import.meta.dirname, "../agents");
  const project = closing.adopt(await openProject({ root }), (opened) => opened.close());
  const service = closing.adopt(await openService({ root }), (opened) => opened.close());
  const server = closing.adopt(createServer({ project, service }), (opened) => opened.close());
  return (await server.listen({ port: 0 })).url;
}

// Any program that takes a base URL and a key: here the server needs no key.
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
const model = "desk";

const { data } = await client.models.list();
console.log(`Models: ${data.map(({ id }) => id).join(", ")}`);

console.log("\nChat Completions, streamed:");
const chunks = await client.chat.completions.create({
  model,
  stream: true,
  messages: [{ role: "user", content: "Which rules apply to letters/2026-10-02.md?" }],
});
for await (const { choices } of chunks) process.stdout.write(choices[0]?.delta.content ?? "");

console.log("\n\nResponses, in one session:");
const first = await client.responses.create({ model, input: "Which rules apply to letters/2026-10-02.md?" });
console.log(first.output_text);
const second = await client.responses.create({
  model,
  input: "What does a change of tools/catalog.ts affect?",
  previous_response_id: first.id,
});
console.log(`\n${second.output_text}`);

console.log("\nIn the background, read to its end from another place:");
const { id } = await client.responses.create({
  model,
  input: "Which rules apply to README.md?",
  background: true,
});
for await (const event of await client.responses.retrieve(id, { stream: true }))
  if (event.type === "response.completed") console.log(`${id}: ${event.response.status}`);
