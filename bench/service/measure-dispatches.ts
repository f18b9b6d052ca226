import { openConnection, toRequest } from "./http-connection.ts";
import { measureLoad, quantile } from "./load.ts";
import type { Figures } from "./measurements.ts";
import { type ServerProcess, startServer } from "./server-process.ts";
import { askToHold } from "./subject.ts";
import type { SubjectName } from "./subjects.ts";

const connections = 64;
/** Fewer than the limit of waiting inputs (10,000), so that none is refused. */
const inputs = 8_000;
const warmUp = 2_000;
const question = "Which rules apply to src/auth.ts?";

/** Dispatches to 1,000 instances as fast as the connections allow. */
export async function measureAdmission(subject: SubjectName, folder: string): Promise<Figures> {
  const server = await startServer(subject, folder);
  await admit(server, "warm", { count: warmUp });
  if (subject === "kit") await untilDone(server);
  const since = performance.now();
  const figures = await admit(server, "busy", { count: inputs });
  if (subject === "floor") {
    await server.stop();
    return { per_second: figures.per_second, p99_ms: figures.p99_ms };
  }
  await untilDone(server);
  const done = (inputs * 1_000) / (performance.now() - since);
  // Prompts that are never answered take every slot, so accepted inputs only wait.
  await admit(server, "held", { count: 256, input: askToHold });
  const alone = await admit(server, "alone", { count: inputs });
  await server.kill();
  return {
    per_second: figures.per_second,
    p99_ms: figures.p99_ms,
    done_per_second: done,
    alone_per_second: alone.per_second,
    alone_p99_ms: alone.p99_ms,
  };
}

function admit(
  { port }: ServerProcess,
  group: string,
  until: { readonly count: number; readonly input?: string },
): ReturnType<typeof measureLoad> {
  const request = requestsTo(group, 1_000, until.input ?? question);
  return measureLoad({ port, connections, request, until });
}

function requestsTo(group: string, instances: number, input: string): (index: number) => Buffer {
  const requests = Array.from({ length: instances }, (_, instance) =>
    toRequest({ path: `/agents/bench/${group}-${instance}/dispatch`, body: { input } }),
  );
  return (index) => requests[index % instances] ?? Buffer.alloc(0);
}

/** Polls every few milliseconds: constant polling would slow down the server. */
async function untilDone({ port }: ServerProcess): Promise<void> {
  const connection = await openConnection(port);
  const requests = ["queued", "running"].map((status) =>
    toRequest({ path: `/dispatches?status=${status}&limit=1` }),
  );
  for (;;) {
    const replies = [];
    for (const request of requests) replies.push(await connection.send(request));
    if (replies.every(({ body }) => JSON.parse(body).dispatches.length === 0)) break;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  connection.close();
}

/** The client polls for the dispatch, so the time includes the last request. */
export async function measureEndToEnd(subject: SubjectName, folder: string): Promise<Figures> {
  const server = await startServer(subject, folder);
  const connection = await openConnection(server.port);
  const request = requestsTo("one", 1_000, question);
  const times: number[] = [];
  for (let index = 0; index < 1_500; index += 1) {
    const at = performance.now();
    const { body } = await connection.send(request(index));
    const inspect = toRequest({ path: `/dispatches/${JSON.parse(body).dispatch_id}` });
    while (JSON.parse((await connection.send(inspect)).body).status !== "completed");
    if (index >= 500) times.push(performance.now() - at);
  }
  connection.close();
  await server.stop();
  return { p50_ms: quantile(times, 0.5), p99_ms: quantile(times, 0.99) };
}

/** Kills a server that has 1,000 accepted dispatches over 50 instances, and starts it again. */
export async function measureRecovery(subject: SubjectName, folder: string): Promise<Figures> {
  const first = await startServer(subject, folder);
  // The first input of each session is at its model, and the others are queued.
  await measureLoad({
    port: first.port,
    connections,
    request: (index) =>
      toRequest({
        path: `/agents/bench/recovered-${index % 50}/dispatch`,
        body: { input: index < 50 ? askToHold : question },
      }),
    until: { count: 1_000 },
  });
  await first.kill();
  const second = await startServer(subject, folder, { holds: false });
  const listening = sinceStart(second, process.hrtime.bigint());
  const firstCall = sinceStart(second, await second.firstCall);
  await untilDone(second);
  const all = sinceStart(second, process.hrtime.bigint());
  await second.stop();
  return { first_ms: firstCall, listening_ms: listening, all_ms: all };
}

function sinceStart({ startedAt }: ServerProcess, at: bigint): number {
  return Number(at - startedAt) / 1e6;
}
