import { stdin } from "node:process";
import { agentName } from "../choices.ts";
import { type Command, defineCommand, listOption, option } from "../command.ts";

export const acp: Command = defineCommand({
  options: {
    agent: option(
      "-a, --agent <name>",
      "The agent to talk to; default: one with the project's tools only",
      agentName,
    ),
    model: listOption(
      "-m, --model <name>",
      "provider/model; the first is the agent's, and the editor offers all that you name",
      (name) => name,
    ),
  },
  examples: [
    "kit acp",
    "kit acp --agent coder --model anthropic/claude-sonnet-4-6",
    `{ "agent_servers": {`,
    `    "kit": { "type": "custom", "command": "npx",`,
    `             "args": ["--no", "kit", "acp"] } } }`,
  ],
  details:
    "Speaks the Agent Client Protocol on stdin and stdout, for an editor such as Zed to start. The agent works in the folder that the editor has open. It asks in the editor before it changes a file, runs a command or calls an MCP server, unless kit.toml permits that; code of the folder runs, and what its kit.toml permits holds, once you trust it ('kit trust'). Conversations are kept in .kit/sessions.db. Ends when stdin ends.",
  run: async ({ options: { agent = "default", model = [] } }, context) => {
    if (stdin.isTTY)
      context.output.note(
        "kit acp speaks JSON-RPC on stdin and stdout; an editor starts it. Ctrl-C ends it.",
      );
    const { serveAcp } = await import("../acp/serve-acp.ts");
    await serveAcp({ context, agent, models: model });
  },
});
