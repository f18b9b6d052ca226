import { toRequest } from "./http-connection.ts";
import { type LoadOptions, measureLoad } from "./load.ts";
import type { Figures } from "./measurements.ts";
import { startServer } from "./server-process.ts";
import { type SubjectName, toPrompt } from "./subjects.ts";

const connections = 32;
/** How many prompts are sent before the measurement, until the code is compiled, and during it. */
interface Counts {
  readonly warmUp: number;
  readonly measured: number;
}
/** V8 compiles what runs once for each prompt, of every subject, between the 10,000th prompt and the 12,000th. */
const defaultCounts: Counts = { warmUp: 14_000, measured: 8_000 };
/** The numbers for servers that take milliseconds per prompt. */
const longestMs = 20_000;
const knownInstances = 200;

/** Prompts 200 instances in turn, as fast as the connections allow. */
export function measureKnown(
  subject: SubjectName,
  folder: string,
  counts: Counts = defaultCounts,
): Promise<Figures> {
  const requests = Array.from({ length: knownInstances }, (_, instance) => promptOf(subject, instance));
  const request = (index: number): Buffer => requests[index % knownInstances] ?? Buffer.alloc(0);
  return measurePrompts([subject, folder], request, counts);
}

/** Prompts a new instance each time. */
export function measureNew(subject: SubjectName, folder: string): Promise<Figures> {
  let instances = 0;
  return measurePrompts([subject, folder], () => {
    instances += 1;
    return promptOf(subject, instances);
  });
}

const promptOf = (subject: SubjectName, instance: number): Buffer =>
  toRequest(toPrompt(subject, `instance-${instance}`, "Which rules apply to src/auth.ts?"));

async function measurePrompts(
  [subject, folder]: readonly [SubjectName, string],
  request: LoadOptions["request"],
  { warmUp, measured }: Counts = defaultCounts,
): Promise<Figures> {
  const server = await startServer(subject, folder);
  const load = { port: server.port, connections, request };
  await measureLoad({ ...load, until: { count: warmUp, ms: longestMs } });
  const before = await server.cpuMs();
  const { count, ...figures } = await measureLoad({ ...load, until: { count: measured, ms: longestMs } });
  const micros = (((await server.cpuMs()) - before) * 1_000) / count;
  await server.stop();
  return { ...figures, cpu_micros: micros };
}
