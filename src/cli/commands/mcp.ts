import { stdin } from "node:process";
import type { VerifyCall } from "../../mcp/server/tools/verify-specs.ts";
import { type Command, defineCommand, flag } from "../command.ts";
import { describeError } from "../report-error.ts";
import { type OpenedProject, withProject } from "../with-project.ts";

export const mcp: Command = defineCommand({
  options: {
    verify: flag("--verify", "Add the tool verify_specs, which runs the tests of the project in isolation"),
  },
  examples: [
    "kit mcp",
    "kit mcp --verify",
    "claude mcp add kit -- npx --no kit mcp",
    `{ "mcpServers": {`,
    `    "kit": { "command": "npx", "args": ["--no", "kit", "mcp"] } } }`,
  ],
  details:
    "Speaks the Model Context Protocol on stdin and stdout, for a coding agent to start. Its tools show which guidelines apply to a file, search the specs, and show what a change affects. Ends when stdin ends.",
  run: ({ options: { verify } }, context) =>
    withProject(
      context,
      async ({ project, loaded }) => {
        const { output, signal } = context;
        const onError = (error: unknown): void => output.note(`kit mcp: ${describeError(error)}`);
        if (stdin.isTTY) {
          output.note(
            "kit mcp speaks JSON-RPC on stdin and stdout; a coding agent starts it. Ctrl-C ends it.",
          );
        }
        const { serveMcp } = await import("../../mcp/server/serve-mcp.ts");
        await serveMcp(project, {
          ...{ signal, onError },
          verify: verify === true ? await verifyCall({ project, loaded }) : undefined,
        });
        return 0;
      },
      { background: true },
    ),
});

/** Judges for models, whose tests run isolated or not at all. */
async function verifyCall({ project, loaded }: OpenedProject): Promise<VerifyCall> {
  const { createRemoteJudge } = await import("../../app/verify/remote-judge.ts");
  const judge = createRemoteJudge(project, loaded.config);
  return async (request, how) => {
    await judge.admit(request);
    return await judge.judge(request, how);
  };
}
