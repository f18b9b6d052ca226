import { stdin, stdout } from "node:process";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { onAbort } from "../../base/abort.ts";
import type { Project } from "../../project/project.ts";
import { createMcpServer, type ProjectServerOptions } from "./create-mcp-server.ts";
import { StdioTransport } from "./stdio-transport.ts";

export interface ServeMcpOptions extends ProjectServerOptions {
  /** Aborting it stops serving. */
  readonly signal?: AbortSignal;
}

/**
 * Serves a project over stdin and stdout until the client disconnects, and keeps the index current meanwhile. No
 * other code may write to stdout. Does not close the project.
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
  const { onError, signal, verify } = options;
  const transport = new StdioTransport({ input: stdin, output: stdout });
  const stopped = Promise.withResolvers<void>();
  onAbort(signal, () => stopped.resolve());
  // The project may still be in its first indexing pass, so wait for the watch neither here nor at the end.
  let watch: { close(): Promise<void> } | undefined;
  let hasEnded = false;
  project
    .watch()
    .then(async (started) => {
      watch = started;
      if (hasEnded) await started.close();
    })
    .catch((error: unknown) => hasEnded || onError?.(error));
  try {
    const connection = serveStdio(() => createMcpServer(project, { onError, verify }), {
      transport,
      ...(onError === undefined ? {} : { onerror: onError }),
    });
    await Promise.race([transport.ended, stopped.promise]);
    await connection.close();
  } finally {
    hasEnded = true;
    await watch?.close();
  }
}
