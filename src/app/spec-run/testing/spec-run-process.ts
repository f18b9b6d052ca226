/**
 * A process that does the tasks of a spec like `kit run --spec`, and goes on with an open run. Arguments: the root; the payload as JSON;
 * at which event of a step it kills itself, from 1 (0: never). Prints the result as a line of JSON.
 */
import { openProject } from "../../../project/open-project.ts";
import { specRunWorkflow } from "../../../protocol/spec-run.ts";
import { loadConfig } from "../../config/load-config.ts";
import { openProjectService } from "../../service/open-project-service.ts";

const [root = "", payload = "{}", killAt = "0"] = process.argv.slice(2);

const loaded = await loadConfig({ cwd: root, environment: {} });
const project = await openProject({ root, config: loaded.config, indexFile: ":memory:" });
let boundaries = 0;
const service = await openProjectService({
  project,
  loaded,
  isTerminal: true,
  observers: [
    ({ type }) => {
      if (type !== "step_start" && type !== "step_end") return;
      boundaries += 1;
      if (boundaries === Number(killAt)) process.kill(process.pid, "SIGKILL");
    },
  ],
});
const { items } = await service.engine.listRuns({ workflow: specRunWorkflow });
// A kill can come after the end of the run: there is only one in these repositories.
const run_id = items[0]?.run_id ?? (await service.startRun(specRunWorkflow, JSON.parse(payload))).run_id;
const run = await service.engine.awaitRun(run_id);
process.stdout.write(`${JSON.stringify({ run, boundaries })}\n`);
await service.close({ timeoutMs: 0 });
await project.close();
