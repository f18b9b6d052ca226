/**
 * The server of a subject: `node --expose-gc serve.ts <subject> <folder> <holds>`. Prints its port and when
 * its model was first called, answers queries on stdin, and ends when stdin ends.
 */
import { createInterface } from "node:readline";
import { loadSubject, type SubjectName } from "./subjects.ts";

const [subject = "kit", folder = "", holds] = process.argv.slice(2);
const print = (line: Readonly<Record<string, string>>): void =>
  void process.stdout.write(`${JSON.stringify({ bench: line })}\n`);

const serve = await loadSubject(subject as SubjectName);
const port = await serve({
  folder,
  holds: holds === "true",
  onFirstCall: (at) => print({ called_at: `${at}` }),
});
print({ port: `${port}` });
const lines = createInterface({ input: process.stdin });
lines.on("line", async (question) => {
  if (question === "cpu") {
    const { user, system } = process.cpuUsage();
    print({ cpu_ms: `${(user + system) / 1_000}` });
  } else {
    // In kilobytes.
    const peak = process.resourceUsage().maxRSS;
    // A major collection returns free memory to the system; memory that finalizers free shows after a turn of the event loop.
    for (let time = 0; time < 3; time += 1) {
      globalThis.gc?.({ type: "major", execution: "sync", flavor: "last-resort" });
      await new Promise(setImmediate);
    }
    const { heapUsed, external, rss } = process.memoryUsage();
    print({ heap: `${heapUsed + external}`, rss: `${rss}`, peak: `${peak}` });
  }
});
lines.once("close", () => process.exit(0));
