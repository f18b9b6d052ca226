import { stdin } from "node:process";
import { type Command, defineCommand } from "../command.ts";
import { describeError } from "../report-error.ts";
import { withProject } from "../with-project.ts";

export const mcp: Command = defineCommand({
  options: {},
  examples: [
    "kit mcp",
    "claude mcp add kit -- npx --no kit mcp",
    `{ "mcpServers": {`,
    `    "kit": { "command": "npx", "args": ["--no", "kit", "mcp"] } } }`,
  ],
  details:
    "Speaks the Model Context Protocol on stdin and stdout, for a coding agent to start. Its tools show which guidelines apply to a file, search the specs, and show what a change affects. Ends when stdin ends.",
  run: (_, context) =>
    withProject(
      context,
      async ({ project }) => {
        const { output, signal } = context;
        const onError = (error: unknown): void => output.note(`kit mcp: ${describeError(error)}`);
        if (stdin.isTTY) {
          output.note(
            "kit mcp speaks JSON-RPC on stdin and stdout; a coding agent starts it. Ctrl-C ends it.",
          );
        }
        const { serveMcp } = await import("../../mcp/server/serve-mcp.ts");
        await serveMcp(project, { signal, onError });
        return 0;
      },
      { background: true },
    ),
});
