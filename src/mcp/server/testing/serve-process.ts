/** A process of its own that serves a project over MCP, as `kit mcp` does. Argument: the root. */
import { openProject } from "../../../project/open-project.ts";
import { serveMcp } from "../serve-mcp.ts";

const project = await openProject({ root: process.argv[2] ?? "", indexFile: ":memory:" });
await project.refresh();
await serveMcp(project, { onError: (error) => process.stderr.write(`${String(error)}\n`) });
await project.close();
