/**
 * A process of its own that serves a project, as `kit start` would, with time-outs short enough to
 * wait for. Arguments: the root, and the API keys if any. Prints the port and ends with its stdin.
 */
import { openProject } from "../../project/open-project.ts";
import { createServer } from "../create-server.ts";

const [root = "", ...apiKeys] = process.argv.slice(2);
const project = await openProject({ root, indexFile: ":memory:" });
await project.refresh();
const server = createServer({
  project,
  access: { apiKeys },
  limits: { headersTimeoutMs: 1_000, requestTimeoutMs: 1_500 },
  onError: (error) => process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`),
});
const { port } = await server.listen({ port: 0 });
process.stdout.write(`${port}\n`);
process.stdin.resume();
process.stdin.once("end", async () => {
  await server.close();
  await project.close();
});
