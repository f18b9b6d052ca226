/**
 * Appends events to a log until it is killed, and prints each used index on stdout, one per line: the
 * events that a client can have seen. `node serve-process.ts <folder> <fence> <stream>`
 */
import { writeSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { systemClock } from "../../../../base/clock.ts";
import { openEventLog } from "../event-log.ts";

const [folder = "", fence = "1", stream = ""] = process.argv.slice(2);
const log = openEventLog({
  folder,
  clock: systemClock,
  lease: { fence: Number(fence), signal: new AbortController().signal },
});
let index = await log.last(stream);
for (;;) {
  for (let count = 0; count < 20; count += 1) {
    index += 1;
    log.append(stream, {
      index,
      timestamp: new Date().toISOString(),
      agent: "reviewer",
      instance_id: "1",
      session: "default",
      operation_id: "op_1",
      type: "text_delta",
      text: `word ${index} `,
    });
  }
  writeSync(1, `${index}\n`);
  await setImmediate();
}
