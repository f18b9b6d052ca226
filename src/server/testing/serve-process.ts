/**
 * A process of its own that serves a project with its agents, as `kit start` would, with time-outs short
 * enough to wait for. Arguments: the root, and the API keys if any. Prints the port, answers each line of
 * its stdin with a line about its state, and ends with its stdin.
 */
import { createInterface } from "node:readline";
import { openProject } from "../../project/open-project.ts";
import { processorMs } from "../../testing/processor-time.ts";
import { openTestService } from "../../testing/test-service.ts";
import { createServer } from "../create-server.ts";
import { createEchoModel } from "./echo-model.ts";

const [root = "", ...apiKeys] = process.argv.slice(2);
const project = await openProject({ root, indexFile: ":memory:" });
await project.refresh();
const service = await openTestService({ root, model: createEchoModel().model });
const server = createServer({
  project,
  service,
  access: { apiKeys },
  authorize: ({ instance }) => instance?.startsWith("other-tenant") !== true,
  limits: { headersTimeoutMs: 1_000, requestTimeoutMs: 1_500 },
  onError: (error) => process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`),
});
const { port } = await server.listen({ port: 0 });
process.stdout.write(`${port}\n`);
const lines = createInterface({ input: process.stdin });
lines.on("line", () => {
  const sockets = process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;
  const polluted = ({} as { polluted?: unknown }).polluted !== undefined;
  process.stdout.write(`${JSON.stringify({ sockets, polluted, processorMs: processorMs() })}\n`);
});
lines.once("close", async () => {
  await server.close();
  await service.close();
  await project.close();
});
