import { once } from "node:events";
import type { Socket } from "node:net";
import { WebSocket } from "ws";
import { openConnection, openSocket, toRequest } from "./http-connection.ts";
import { measureLoad } from "./load.ts";
import type { Figures } from "./measurements.ts";
import { type Memory, type ServerProcess, startServer } from "./server-process.ts";
import { type SubjectName, toPrompt } from "./subjects.ts";

const prompts = 10_000;

/** Measures how much memory `happen` adds to a warm server, after garbage collections. */
async function measureMemory(
  [subject, folder]: readonly [SubjectName, string],
  happen: (server: ServerProcess) => Promise<() => void>,
): Promise<Figures> {
  const server = await startServer(subject, folder);
  const instances = 20;
  await prompt(server, subject, { group: "warm", count: prompts, instances });
  await remove(
    server,
    Array.from({ length: instances }, (_, index) => `warm-${index}`),
  );
  const before = await server.memory();
  const end = await happen(server);
  const after = await server.memory();
  end();
  await server.stop();
  return difference(after, before);
}

async function remove({ port }: ServerProcess, instances: readonly string[]): Promise<void> {
  const connection = await openConnection(port);
  for (const instance of instances) {
    await connection.send(toRequest({ method: "DELETE", path: `/agents/bench/${instance}` }));
  }
  connection.close();
}

function difference(after: Memory, before: Memory): Figures {
  return { heap_mb: after.heap_mb - before.heap_mb, rss_mb: after.rss_mb - before.rss_mb };
}

async function prompt(
  { port }: ServerProcess,
  subject: SubjectName,
  { group, count, instances }: { readonly group: string; readonly count: number; readonly instances: number },
): Promise<void> {
  const request = (index: number): Buffer =>
    toRequest(toPrompt(subject, `${group}-${index % instances}`, "Hello?"));
  await measureLoad({ port, connections: 32, request, until: { count } });
}

/** Measures how much memory instances add to a server without any request. */
export async function measureInstances(subject: SubjectName, folder: string): Promise<Figures> {
  const server = await startServer(subject, folder);
  const empty = await server.memory();
  await prompt(server, subject, { group: "idle", count: prompts, instances: prompts });
  const { rss_mb, heap_mb, peak_mb } = await server.memory();
  await server.stop();
  return { rss_mb: rss_mb - empty.rss_mb, heap_mb: heap_mb - empty.heap_mb, peak_mb };
}

const open = 1_000;

export function measureStreams(subject: SubjectName, folder: string): Promise<Figures> {
  return measureMemory([subject, folder], async ({ port }) => {
    const sockets: Socket[] = [];
    for (let index = 0; index < open; index += 1) {
      const socket = await openSocket(port);
      socket.write(
        toRequest({
          path: `/agents/bench/streamed-${index}/events`,
          headers: { accept: "text/event-stream" },
        }),
      );
      const [head] = await once(socket, "data");
      if (!`${head}`.startsWith("HTTP/1.1 200")) throw new Error(`${head}`);
      sockets.push(socket);
    }
    return () => {
      for (const socket of sockets) socket.destroy();
    };
  });
}

export function measureWebSockets(subject: SubjectName, folder: string): Promise<Figures> {
  return measureMemory([subject, folder], async ({ port }) => {
    const sockets: WebSocket[] = [];
    for (let index = 0; index < open; index += 1) {
      const socket = new WebSocket(`ws://127.0.0.1:${port}/agents/bench/connected-${index}`);
      await once(socket, "message");
      sockets.push(socket);
    }
    return () => {
      for (const socket of sockets) socket.terminate();
    };
  });
}

const waiting = 5_000;
const watchedMs = 5_000;

export async function measureWaitingRuns(subject: SubjectName, folder: string): Promise<Figures> {
  const server = await startServer(subject, folder);
  const request = toRequest({ path: "/workflows/waiting", body: {} });
  const start = (count: number): Promise<unknown> =>
    measureLoad({ port: server.port, connections: 16, request: () => request, until: { count } });
  await start(200);
  await untilAllWait(server);
  const before = await server.memory();
  const idle = await cpuPercent(server);
  await start(waiting);
  await untilAllWait(server);
  const after = await server.memory();
  const busy = await cpuPercent(server);
  await server.stop();
  return { cpu_percent: busy - idle, idle_cpu_percent: idle, ...difference(after, before) };
}

async function cpuPercent(server: ServerProcess): Promise<number> {
  const before = await server.cpuMs();
  await new Promise((resolve) => setTimeout(resolve, watchedMs));
  return (((await server.cpuMs()) - before) * 100) / watchedMs;
}

/** Waits until the runs are suspended too: a run that has just begun to wait stays in memory for a moment. */
async function untilAllWait({ port }: ServerProcess): Promise<void> {
  const connection = await openConnection(port);
  const requests = ["queued", "running"].map((status) =>
    toRequest({ path: `/runs?status=${status}&limit=1` }),
  );
  for (;;) {
    const replies = [];
    for (const request of requests) replies.push(await connection.send(request));
    if (replies.every(({ body }) => JSON.parse(body).runs.length === 0)) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  connection.close();
  await new Promise((resolve) => setTimeout(resolve, 2_000));
}
