/** `node main.ts`: asks the desk in this process. Without a key, the built-in model quotes what it finds. */
import { openAgents } from "kit";

const root = import.meta.dirname;
const app = await openAgents({ root });
try {
  const session = (await app.instance("desk", "ann")).session();
  for await (const event of session.stream("Which rules apply to letters/2026-10-02.md?")) {
    if (event.type === "tool_start") console.log(`→ ${event.tool}`);
    if (event.type === "text_delta") process.stdout.write(event.text);
  }
  process.stdout.write("\n");
} finally {
  await app.close();
}
