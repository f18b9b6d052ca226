import { toRequest } from "./http-connection.ts";
import { measureLoad } from "./load.ts";
import type { Figures } from "./measurements.ts";
import { startServer } from "./server-process.ts";
import { type SubjectName, toPrompt } from "./subjects.ts";

const connections = 32;
const warmUpMs = 3_000;
const measureMs = 4_000;

/** Prompts 1,000 instances in turn, as fast as so many connections carry them. */
export async function measurePrompts(subject: SubjectName, folder: string): Promise<Figures> {
  const server = await startServer(subject, folder);
  const requests = Array.from({ length: 1_000 }, (_, instance) =>
    toRequest(toPrompt(subject, `instance-${instance}`, "Which rules apply to src/auth.ts?")),
  );
  const load = {
    port: server.port,
    connections,
    request: (index: number) => requests[index % requests.length] ?? Buffer.alloc(0),
  };
  await measureLoad({ ...load, until: { ms: warmUpMs } });
  const figures = await measureLoad({ ...load, until: { ms: measureMs } });
  await server.stop();
  return { ...figures };
}
