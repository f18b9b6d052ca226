import { stdin } from "node:process";
import type { VerifyCall } from "../../mcp/server/tools/verify-specs.ts";
import { wholeNumber } from "../choices.ts";
import { type Command, type CommandContext, defineCommand, type ExitCode, flag, option } from "../command.ts";
import { describeError, usageError } from "../report-error.ts";
import { serve, serveOptions } from "../serve.ts";
import { type OpenedProject, withProject } from "../with-project.ts";
import { textLog } from "./start.ts";

export const mcp: Command = defineCommand({
  arguments: [
    { usage: "[action]", description: "login or logout; default: serve", completes: ["login", "logout"] },
    { usage: "[server]", description: "The name of the MCP server in the configuration" },
  ],
  options: {
    timeout: option(
      "--timeout <seconds>",
      "How long a login waits for the browser (default 300)",
      wholeNumber(1, 3_600),
    ),
    verify: flag("--verify", "Add the tool verify_specs, which runs the tests of the project in isolation"),
    http: flag("--http", "Serve over HTTP at /mcp, with the project's agents and workflows"),
    ...serveOptions,
  },
  drains: true,
  examples: [
    "kit mcp",
    "kit mcp --verify",
    "kit mcp --http --port 3001",
    "kit mcp login github",
    "kit mcp logout github",
    "claude mcp add kit -- npx --no kit mcp",
    `{ "mcpServers": {`,
    `    "kit": { "command": "npx", "args": ["--no", "kit", "mcp"] } } }`,
  ],
  details:
    "Speaks the Model Context Protocol on stdin and stdout, for a coding agent to start. Its tools show which guidelines apply to a file, search the specs, and show what a change affects. Ends when stdin ends. With --http it is a server like kit start, with /mcp alone: agents that are served and workflows are tools too, and KIT_API_KEYS and server.oauth say who may call them. 'kit mcp login' logs in at a server of mcp.servers whose tools agents use, by OAuth, and keeps the login in $XDG_STATE_HOME/kit/mcp-logins for this project; 'kit mcp logout' removes it there, and revokes its tokens if the authorization server takes that.",
  run: ({ args: [action, server], options: { verify, http, timeout, ...options } }, context) => {
    if (action !== undefined) {
      const given = Object.entries({ verify, http, ...options }).find(([, value]) => value !== undefined);
      if (given !== undefined)
        throw usageError(`--${toOptionName(given[0])} is no option of kit mcp ${action}.`, "Leave it out.");
      return changeLogin(action, { server, timeout }, context);
    }
    if (timeout !== undefined) throw usageError("--timeout is an option of kit mcp login.", "Leave it out.");
    if (http === true) return serveHttp(verify, options, context);
    const given = Object.entries(options).find(([, value]) => value !== undefined);
    if (given !== undefined)
      throw usageError(
        `--${toOptionName(given[0])} is an option of kit mcp --http.`,
        "Add --http, or leave it out.",
      );
    return withProject(
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
      },
      { background: true },
    );
  },
});

async function changeLogin(
  action: string,
  { server, timeout }: { readonly server: string | undefined; readonly timeout: number | undefined },
  context: CommandContext,
): Promise<ExitCode> {
  if (action !== "login" && action !== "logout")
    throw usageError(`kit mcp has no ${JSON.stringify(action)}.`, "It has login and logout.");
  if (server === undefined)
    throw usageError(`kit mcp ${action} needs the name of a server.`, `Write 'kit mcp ${action} NAME'.`);
  const { changeLogin: change } = await import("./mcp-login.ts");
  const timeoutMs = timeout === undefined ? undefined : timeout * 1000;
  return await change(action, { name: server, timeoutMs }, context);
}

function serveHttp(
  verify: boolean | undefined,
  options: Parameters<typeof serve>[0],
  context: CommandContext,
): Promise<ExitCode> {
  if (verify === true)
    throw usageError(
      "--verify is no option of kit mcp --http.",
      "A server judges with POST /workflows/kit.verify.",
    );
  return serve(options, context, { dev: false, only: "mcp", ...textLog(context.output, undefined) });
}

function toOptionName(name: string): string {
  return name.replace(/[A-Z]/g, (sign) => `-${sign.toLowerCase()}`);
}

/** Judges for models, whose tests run isolated or not at all. */
async function verifyCall({ project, loaded }: OpenedProject): Promise<VerifyCall> {
  const { createRemoteJudge } = await import("../../app/verify/remote-judge.ts");
  const judge = createRemoteJudge(project, loaded.config);
  return async (request, how) => {
    await judge.admit(request);
    return await judge.judge(request, how);
  };
}
