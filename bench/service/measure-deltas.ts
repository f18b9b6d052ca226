import { openSocket, toRequest } from "./http-connection.ts";
import { quantile } from "./load.ts";
import type { Figures } from "./measurements.ts";
import { startServer } from "./server-process.ts";
import { askForDeltas, deltasPerAnswer } from "./subject.ts";
import { type SubjectName, toPrompt } from "./subjects.ts";

const answers = 12;
const warmUp = 2;

/** Measures the time from the model to the client of each delta of a streamed answer. */
export async function measureDeltas(subject: SubjectName, folder: string): Promise<Figures> {
  const server = await startServer(subject, folder);
  const firsts: number[] = [];
  const later: number[] = [];
  for (let answer = 0; answer < answers; answer += 1) {
    const [first = Number.NaN, ...rest] = await readDelays(server.port, subject);
    if (answer < warmUp) continue;
    firsts.push(first);
    later.push(...rest);
  }
  await server.stop();
  return {
    first_p50_ms: quantile(firsts, 0.5),
    later_p50_ms: quantile(later, 0.5),
    later_p99_ms: quantile(later, 0.99),
  };
}

async function readDelays(port: number, subject: SubjectName): Promise<readonly number[]> {
  const socket = await openSocket(port);
  const headers = { accept: "text/event-stream" };
  socket.write(toRequest({ ...toPrompt(subject, "streamed", askForDeltas), headers }));
  const delays: number[] = [];
  let rest = "";
  for await (const chunk of socket) {
    const now = process.hrtime.bigint();
    const lines = `${rest}${chunk}`.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const at = /"type":"text_delta".*"text":"(\d+) "/.exec(line)?.[1];
      if (at !== undefined) delays.push(Number(now - BigInt(at)) / 1e6);
    }
    if (delays.length === deltasPerAnswer) break;
  }
  socket.destroy();
  if (delays.length < deltasPerAnswer) throw new Error(`Only ${delays.length} deltas came.`);
  return delays;
}
