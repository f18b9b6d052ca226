/**
 * A separate process that serves tools over stdin and stdout with the MCP server library. Arguments: a
 * file to which it appends a line for every call, and `late=<ms>` to start slowly.
 */
import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { createToolServer } from "./create-tool-server.ts";

const [log = "", ...options] = process.argv.slice(2);
const late = options.find((option) => option.startsWith("late="));
if (late !== undefined) await sleep(Number(late.slice("late=".length)));

serveStdio(() =>
  createToolServer({
    onCall(line) {
      if (log !== "") appendFileSync(log, `${line}\n`);
    },
    exit: (code) => process.exit(code),
    startChild: () => spawn("sleep", ["600"], { stdio: "inherit" }).pid ?? 0,
  }),
);
