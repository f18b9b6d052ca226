import { createSecretMask } from "../../src/agents/secrets.ts";
import { modernRequest } from "../../src/server/testing/mcp-client.ts";
import { serveService } from "../../src/server/testing/serve-service.ts";

const methods = ["server/discover", "tools/list"] as const;
const [warmUps, pairs] = [150, 600];

/** Milliseconds that `tools/list` over HTTP takes longer than `server/discover`: the difference of the medians, asked for in turns. */
export async function listCostMs(): Promise<number> {
  const served = await serveService({ mask: createSecretMask(["sk-live-4f0c9a7de1b24c55", "a-password"]) });
  const times = { "server/discover": [] as number[], "tools/list": [] as number[] };
  for (let pair = 0; pair < warmUps + pairs; pair += 1)
    for (const method of methods) {
      const { headers, body } = modernRequest(method);
      const started = performance.now();
      const reply = await fetch(`${served.url}/mcp`, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      if (!(await reply.text()).includes('"result"')) throw new Error(`${method} has failed.`);
      if (pair >= warmUps) times[method].push(performance.now() - started);
    }
  await served.close();
  return medianOf(times["tools/list"]) - medianOf(times["server/discover"]);
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}
