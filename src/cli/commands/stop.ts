import { setTimeout as delay } from "node:timers/promises";
import { KitError } from "../../base/kit-error.ts";
import { isAlive } from "../../processes/is-alive.ts";
import { type Command, defineCommand, flag } from "../command.ts";
import { findRunningServers, isServerProcess, type RunningServer } from "../running-server.ts";

/** How long servers may finish the requests under way, in ms. */
const drainMs = 60_000;
/** How often to look whether a server has ended, in ms. */
const pollMs = 100;

export const stop: Command = defineCommand({
  options: {
    now: flag("--now", "Kill them: work under way continues with the next start, as after a crash"),
  },
  examples: ["kit stop", "kit stop --now"],
  details:
    "Ends the 'kit dev' and 'kit start' of this project on this machine, and nothing else: requests under way may finish first, and accepted work continues with the next start. Exits with 1 if none runs.",
  run: async ({ options: { now = false } }, context) => {
    const { output, root, signal, json } = context;
    const servers = (await findRunningServers(root)).filter(isServerProcess);
    if (servers.length === 0)
      throw new KitError({
        code: "not_found",
        message: "No server runs for this project.",
        hint: "'kit stop' ends those of this machine and this user only.",
      });
    for (const { pid } of servers) process.kill(pid, now ? "SIGKILL" : "SIGTERM");
    const late = await waitForEnd(servers, signal);
    if (late.length > 0)
      throw new KitError({
        code: "unavailable",
        message: `Process ${late.map(({ pid }) => pid).join(" and ")} still finishes its requests after ${drainMs / 1_000} s.`,
        hint: "It ends by itself; 'kit stop --now' kills it.",
      });
    if (json) output.json({ stopped: servers.map(({ pid, url }) => ({ pid, url })) });
    else for (const { pid, url } of servers) output.note(`Stopped the server at ${url} (process ${pid}).`);
  },
});

/** The servers that have not ended in time. */
async function waitForEnd(
  servers: readonly RunningServer[],
  signal: AbortSignal,
): Promise<readonly RunningServer[]> {
  const until = Date.now() + drainMs;
  for (;;) {
    const left = servers.filter(({ pid }) => isAlive(pid));
    if (left.length === 0 || Date.now() > until) return left;
    await delay(pollMs, undefined, { signal });
  }
}
