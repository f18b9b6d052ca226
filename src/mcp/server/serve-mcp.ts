import { stdin, stdout } from "node:process";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { onAbort } from "../../base/abort.ts";
import type { Project } from "../../project/project.ts";
import { createMcpServer } from "./create-mcp-server.ts";
import { StdioTransport } from "./stdio-transport.ts";
import type { ToolOptions } from "./tool.ts";

export interface ServeMcpOptions extends ToolOptions {
  /** Ends the service early. */
  readonly signal?: AbortSignal;
}

/**
 * Serves a project over stdin and stdout until the client hangs up, and keeps the index current
 * meanwhile. Nothing else may write to stdout. Does not close the project.
 *
 * @example
 * ```ts
 * import { openProject } from "kit";
 * import { serveMcp } from "kit/mcp";
 *
 * const project = await openProject({ root: "." });
 * await serveMcp(project, { onError: (error) => console.error(error) });
 * await project.close();
 * ```
 */
export async function serveMcp(project: Project, options: ServeMcpOptions = {}): Promise<void> {
  const { onError, signal } = options;
  const transport = new StdioTransport({ input: stdin, output: stdout });
  const stopped = Promise.withResolvers<void>();
  onAbort(signal, () => stopped.resolve());
  // The first pass of the project may still run: serving does not wait for the watch.
  const watch = project.watch();
  watch.catch((error: unknown) => onError?.(error));
  try {
    const connection = serveStdio(() => createMcpServer(project, { onError }), {
      transport,
      ...(onError === undefined ? {} : { onerror: onError }),
    });
    await Promise.race([transport.ended, stopped.promise]);
    await connection.close();
  } finally {
    await watch.then(({ close }) => close()).catch(() => undefined);
  }
}
