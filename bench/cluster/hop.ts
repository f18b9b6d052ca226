/**
 * `node bench/cluster/hop.ts`: the cost of a hop to the owner. Two servers in processes of their own over one Postgres get the
 * same prompts, sent to the owner and to the other server in turns: whole replies, and the delay of each delta (from the time in its
 * event to its arrival). About twenty seconds.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { loadavg } from "node:os";
import { readEventStream } from "../../src/server/testing/read-event-stream.ts";
import { serveNode } from "../../src/server/testing/serve-cluster.ts";
import { Database } from "../../tests/cluster/harness/database.ts";

interface Ready {
  readonly url: string;
}

const [, , databaseUrl] = process.argv;
if (databaseUrl !== undefined) await serve(databaseUrl);
else await measure();

/** A server of the cluster, which answers for each instance whether it owns it. */
async function serve(url: string): Promise<void> {
  const node = await serveNode({ url, schema: "hop_bench" });
  process.on("message", (instance_id: string) =>
    process.send?.(node.cluster.owns({ agent: "echo", instance_id })),
  );
  process.send?.({ url: node.url } satisfies Ready);
}

async function measure(): Promise<void> {
  const database = await Database.start();
  const children = [1, 2].map(() => fork(import.meta.filename, [database.url], { execArgv: [] }));
  try {
    const urls: string[] = [];
    for (const child of children) urls.push(((await once(child, "message"))[0] as Ready).url);
    const [owner = "", front = ""] = urls;
    const ids = await ownedByFirst();
    process.stdout.write(`load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}\n`);
    const direct: number[] = [];
    const hopped: number[] = [];
    for (let round = 0; round < 300; round += 1) {
      direct.push(await prompt(owner, ids[0] ?? ""));
      hopped.push(await prompt(front, ids[0] ?? ""));
    }
    print("a whole reply", direct.slice(20), hopped.slice(20));
    const delays = await Promise.all(
      ids.slice(1, 9).map((id, at) => deltas(at % 2 === 0 ? owner : front, id)),
    );
    print(
      "a delta",
      delays.filter((_, at) => at % 2 === 0).flat(),
      delays.filter((_, at) => at % 2 === 1).flat(),
    );
  } finally {
    for (const child of children) child.kill("SIGKILL");
    await database.remove();
  }

  /** Instances of the first server, once the second server has its share. */
  async function ownedByFirst(): Promise<readonly string[]> {
    for (;;) {
      const found: string[] = [];
      for (let number = 0; number < 60; number += 1) {
        children[0]?.send(`i${number}`);
        const [isOwn] = children[0] === undefined ? [] : await once(children[0], "message");
        if (isOwn === true) found.push(`i${number}`);
      }
      if (found.length < 45 && found.length > 10) return found;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

function ask(
  url: string,
  id: string,
  { message, accept }: Record<"message" | "accept", string>,
): Promise<Response> {
  return fetch(`${url}/agents/echo/${id}`, {
    method: "POST",
    body: JSON.stringify({ message }),
    headers: { "content-type": "application/json", accept },
  });
}

async function prompt(url: string, id: string): Promise<number> {
  const began = performance.now();
  await (await ask(url, id, { message: "Hello.", accept: "application/json" })).text();
  return performance.now() - began;
}

/** The delays of a hundred deltas, in ms. Events have times in whole milliseconds, so half a millisecond is added to each, for both servers. */
async function deltas(url: string, id: string): Promise<readonly number[]> {
  const delays: number[] = [];
  for await (const { event, data } of readEventStream(
    await ask(url, id, { message: "slow", accept: "text/event-stream" }),
  )) {
    if (event === "text_delta")
      delays.push(performance.timeOrigin + performance.now() - Date.parse(data.timestamp));
    if (delays.length === 100) break;
  }
  return delays;
}

function print(what: string, direct: readonly number[], hopped: readonly number[]): void {
  const at = (values: readonly number[], part: number): string =>
    (values.toSorted((one, other) => one - other)[Math.floor(values.length * part)] ?? 0).toFixed(2);
  const added = (Number(at(hopped, 0.5)) - Number(at(direct, 0.5))).toFixed(2);
  process.stdout.write(
    `${what}: ${at(direct, 0.5)} ms p50, ${at(direct, 0.99)} p99 at the owner; ${at(hopped, 0.5)}, ${at(hopped, 0.99)} over the hop: adds ${added} ms p50 (target for a delta: 0.5)\n`,
  );
}
