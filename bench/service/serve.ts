/**
 * The server of a subject: `node --expose-gc serve.ts <subject> <folder> <holds>`. Says its port and when
 * its model was first called, answers questions on stdin, and ends with it.
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
    // The thorough kind gives back to the system what is free; what finalizers free shows after a turn.
    for (let time = 0; time < 3; time += 1) {
      globalThis.gc?.({ type: "major", execution: "sync", flavor: "last-resort" });
      await new Promise(setImmediate);
    }
    const { heapUsed, external, rss } = process.memoryUsage();
    print({ heap: `${heapUsed + external}`, rss: `${rss}`, peak: `${peak}` });
  }
});
lines.once("close", () => process.exit(0));
