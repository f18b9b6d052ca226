/**
 * The process in which Python runs. kit starts it with an empty environment. It exchanges frames on standard input and
 * output, runs one program at a time, and keeps no state between programs.
 */
import { ownModule } from "../../base/own-package.ts";
import type { HostMessage } from "../process/messages.ts";
import type { MontyModule } from "./machine.ts";
import { createPipes } from "./pipes.ts";
import { runProgram } from "./run-program.ts";
import { startWatchdog } from "./watchdog-state.ts";

const [, , backend = "@pydantic/monty", host] = process.argv;
const link = createPipes();
const watchdog = startWatchdog(ownModule("python/child/watchdog"), Number(host));
const monty = await loadMonty(backend);
if (monty !== undefined) {
  link.send({ type: "ready" });
  for (;;) {
    const frame = link.read();
    if (frame === undefined) break;
    const message = frame.header as HostMessage;
    const { attachment } = frame;
    if (message.type === "run") runProgram({ message, attachment }, { monty, link, watchdog });
    else if (message.type === "resume") {
      const { run, progress, answer } = message;
      runProgram({ message: run, attachment, resumed: { progress, answer } }, { monty, link, watchdog });
    }
  }
}
process.exit(0);

async function loadMonty(name: string): Promise<MontyModule | undefined> {
  try {
    return await import(name);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const isMissing =
      error instanceof Error &&
      "code" in error &&
      error.code === "ERR_MODULE_NOT_FOUND" &&
      text.includes(name);
    link.send({ type: "unavailable", reason: isMissing ? "missing" : "broken", message: text });
    return undefined;
  }
}
