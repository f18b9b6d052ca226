import { once } from "node:events";
import { stdin } from "node:process";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { createMcpServer } from "../../mcp/create-mcp-server.ts";
import { type Command, defineCommand } from "../command.ts";
import { describeError } from "../report-error.ts";
import { withProject } from "../with-project.ts";

export const mcp: Command = defineCommand({
  options: {},
  examples: [
    "kit mcp",
    "claude mcp add kit -- npx kit mcp",
    `{ "mcpServers": { "kit": { "command": "npx", "args": ["kit", "mcp"] } } }`,
  ],
  details:
    "Speaks the Model Context Protocol on stdin and stdout, for a coding agent to start: tools that say which guidelines apply to a file, search the specs, and tell what a change affects. Ends when stdin does.",
  run: (_, context) =>
    withProject(context, async ({ project }) => {
      const { output, signal } = context;
      const onError = (error: unknown): void => output.note(`kit mcp: ${describeError(error)}`);
      const watcher = await project.watch();
      const ended = endOf(signal);
      const connection = serveStdio(() => createMcpServer(project, { onError }), { onerror: onError });
      try {
        if (stdin.isTTY)
          output.note(
            "kit mcp speaks JSON-RPC on stdin and stdout; a coding agent starts it. Ctrl-C ends it.",
          );
        await ended;
      } finally {
        await connection.close();
        await watcher.close();
      }
      return 0;
    }),
});

async function endOf(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await Promise.race([once(stdin, "end"), once(stdin, "close"), once(signal, "abort")]);
}
