import { once } from "node:events";
import { Worker } from "node:worker_threads";

const threads = 3;

/**
 * Calls `body` in three threads at the same moment, `rounds` times, with the number of the round as `round` and the fields of
 * `data` as `data`. Returns the messages of the errors that it threw.
 */
export async function threadsAtOnce({
  rounds,
  setUp,
  body,
  data,
}: {
  readonly rounds: number;
  /** Statements that run once in each thread. */
  readonly setUp: string;
  readonly body: string;
  readonly data: object;
}): Promise<readonly string[]> {
  const code = `
    const { parentPort, workerData } = require("node:worker_threads");
    const { arrived, data } = workerData;
    (async () => {
      ${setUp};
      for (let round = 0; round < ${rounds}; round += 1) {
        Atomics.add(arrived, round, 1);
        while (Atomics.load(arrived, round) < ${threads});
        try {
          ${body};
        } catch (error) {
          parentPort.postMessage(error.message);
        }
      }
    })();`;
  const workerData = { arrived: new Int32Array(new SharedArrayBuffer(4 * rounds)), data };
  const errors: string[] = [];
  await Promise.all(
    Array.from({ length: threads }, async () => {
      const worker = new Worker(code, { eval: true, execArgv: [], workerData });
      worker.on("message", (error: string) => errors.push(error));
      await once(worker, "exit");
    }),
  );
  return errors;
}
