/** A separate process that serves a project over MCP, like `kit mcp`. Argument: the root. */
import { openProject } from "../../../project/open-project.ts";
import { serveMcp } from "../serve-mcp.ts";

const project = await openProject({ root: process.argv[2] ?? "", indexFile: ":memory:" });
await project.refresh();
await serveMcp(project, { onError: (error) => process.stderr.write(`${String(error)}\n`) });
await project.close();
