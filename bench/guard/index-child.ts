/** Measures indexing a small repository, and reading its files and splitting them into lines: `node index-child.ts <folder>`; prints JSON. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openProject } from "../../src/project/open-project.ts";
import { generateRepository } from "../project/generate-repository.ts";
import { startTime } from "../runtime/timing.ts";

const rounds = 6;
const root = join(process.argv[2] ?? "", "repository");
const { sources } = generateRepository({ root, files: 300, seed: 5 });
const taken = { kit: Number.POSITIVE_INFINITY, floor: Number.POSITIVE_INFINITY };
for (let round = 0; round < rounds; round += 1) {
  const reading = startTime();
  // A single pass takes a few milliseconds, too short to measure.
  for (let time = 0; time < 10; time += 1)
    for (const path of sources) readFileSync(join(root, path), "utf8").split(/\r\n|\n|\r/);
  taken.floor = Math.min(taken.floor, reading.spentMs() / 10);
  const indexing = startTime();
  const project = await openProject({ root, indexFile: ":memory:" });
  taken.kit = Math.min(taken.kit, indexing.spentMs());
  await project.close();
}
console.log(JSON.stringify(taken));
