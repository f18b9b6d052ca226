/** `node main.ts`: serves the desk of `../agents` on a free port, and calls it with OpenAI's client. */
import { join } from "node:path";
import { openProject, openService } from "kit";
import { createServer } from "kit/server";
import OpenAI from "openai";

const root = join(import.meta.dirname, "../agents");
await using closing = new AsyncDisposableStack();
const project = closing.adopt(await openProject({ root }), (opened) => opened.close());
const service = closing.adopt(await openService({ root }), (opened) => opened.close());
const server = closing.adopt(createServer({ project, service }), (opened) => opened.close());
const { url } = await server.listen({ port: 0 });

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
