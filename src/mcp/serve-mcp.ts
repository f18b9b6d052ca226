import { once } from "node:events";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { Project } from "../project/project.ts";
import { createMcpServer } from "./create-mcp-server.ts";
import type { ToolOptions } from "./tool.ts";

export interface ServeMcpOptions extends ToolOptions {
  /** Ends the service early. */
  readonly signal?: AbortSignal;
}

/**
 * Serves a project over stdin and stdout until the client hangs up, and keeps the index current
 * meanwhile. Nothing else may write to stdout. Does not close the project.
 */
export async function serveMcp(project: Project, options: ServeMcpOptions = {}): Promise<void> {
  const { onError, signal } = options;
  // Listened for first: a client may hang up before the watch stands.
  const hungUp = Promise.race([
    once(process.stdin, "close", signal === undefined ? {} : { signal }),
    once(process.stdin, "end"),
  ]).catch(() => undefined);
  const watch = await project.watch();
  try {
    const connection = serveStdio(() => createMcpServer(project, { onError }), {
      ...(onError === undefined ? {} : { onerror: onError }),
    });
    await hungUp;
    await connection.close();
  } finally {
    await watch.close();
  }
}
