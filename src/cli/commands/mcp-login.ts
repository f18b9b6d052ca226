import { createInterface } from "node:readline";
import { createJsonValidator } from "../../app/runtime/validate-json.ts";
import { loginsFolder } from "../../app/trust/trust.ts";
import { suggest } from "../../base/error-text.ts";
import { KitError } from "../../base/kit-error.ts";
import { logIn } from "../../mcp/auth/log-in.ts";
import { logOut } from "../../mcp/auth/log-out.ts";
import { createMcpClient, type McpClientOptions } from "../../mcp/create-mcp-client.ts";
import { ServerFailure } from "../../mcp/servers/server-failure.ts";
import { toServerSettings } from "../../mcp/servers/server-settings.ts";
import type { CommandContext, ExitCode } from "../command.ts";
import { canAsk } from "../print/output.ts";
import { count } from "../print/table.ts";
import { usageError } from "../report-error.ts";
import { safeLine } from "../text/safe-text.ts";
import { loadProjectConfig } from "../with-project.ts";

/** Logs in at a configured MCP server, or removes the login. Throws `invalid_request` for a server without a login. */
export async function changeLogin(
  action: "login" | "logout",
  { name, timeoutMs }: { readonly name: string; readonly timeoutMs: number | undefined },
  context: CommandContext,
): Promise<ExitCode> {
  const { output, json, signal } = context;
  const { login, options } = await openLogin(name, context);
  if (action === "logout") {
    const { removed, revoked, problem } = await logOut(login);
    if (json) output.json({ server: name, removed, revoked: revoked ?? null, problem: problem ?? null });
    else if (!removed) output.note(`You were not logged in at ${name}.`);
    else {
      output.note(`You are logged out of ${name}.`);
      if (problem !== undefined)
        output.note(
          `Its tokens are valid until they end, because kit could not revoke them. ${safeLine(problem)}`,
        );
    }
    return 0;
  }
  const show = (address: URL): void => {
    output.note(`To log in at ${name}, open this address of ${safeLine(address.host)} in a browser:\n`);
    output.note(safeLine(address.href));
    if (canAsk(context))
      output.note("\nIf the browser runs on another machine, enter the address that it ends at:");
  };
  try {
    const pasted = canAsk(context) ? (ending: AbortSignal) => readLine(context, ending) : undefined;
    // The server says what it asks for.
    await toolsOf(options, signal);
    const { issuer, scope } = await logIn(login, { show, pasted, signal, timeoutMs });
    const { tools, problem } = await toolsOf(options, signal);
    if (json) output.json({ server: name, issuer, scope: scope ?? null, tools, problem: problem ?? null });
    else {
      output.note(
        `You are logged in at ${name} (${safeLine(issuer)}${scope ? `: ${safeLine(scope)}` : ""}).`,
      );
      output.note(problem === undefined ? `It offers ${count(tools.length, "tool")}.` : safeLine(problem));
    }
    return problem === undefined ? 0 : 1;
  } catch (error) {
    throw error instanceof ServerFailure ? failed(name, error) : error;
  }
}

function failed(name: string, cause: ServerFailure): KitError {
  const message = `kit could not log in at ${name}. ${cause.message}`;
  return new KitError({ code: "unavailable", message, cause });
}

async function openLogin(name: string, context: CommandContext) {
  const { root } = context;
  const { config, environment: env } = await loadProjectConfig(context, {
    runsCode: true,
    sendsKeys: true,
    dotEnv: true,
  });
  const { servers = {} } = config.mcp ?? {};
  const server = Object.hasOwn(servers, name) ? servers[name] : undefined;
  if (server === undefined) {
    const near = suggest(name, Object.keys(servers));
    throw usageError(
      `There is no MCP server ${JSON.stringify(name)} in the configuration.`,
      near === undefined ? `Add [mcp.servers.${name}] to kit.toml.` : `Did you mean ${near}?`,
    );
  }
  const logins = loginsFolder(root, process.env);
  if (logins === undefined)
    throw new KitError({
      code: "invalid_request",
      message: "Your state folder lies in this project, where agents read, so kit keeps no logins there.",
      hint: "Set XDG_STATE_HOME to an absolute folder outside of the project.",
    });
  const options: McpClientOptions = {
    ...{ config: { servers: { [name]: server } }, root, env, logins },
    validateJson: createJsonValidator({ isLenient: true }),
  };
  const { endpoint, fault } = toServerSettings(name, server, options);
  if (fault !== undefined) throw new KitError({ code: "invalid_request", message: `${name}: ${fault}` });
  const login = endpoint.kind === "address" ? endpoint.login : undefined;
  if (login === undefined)
    throw usageError(
      endpoint.kind === "process"
        ? `${name} is a program, and kit logs in only at servers with an address.`
        : `The header Authorization of ${name} authorizes its requests.`,
      "Only a server with a url and without that header has a login.",
    );
  if (login.settings.grant === "client_credentials")
    throw usageError(
      `kit itself logs in at ${name}, with its client_secret.`,
      "Remove grant from its oauth table to log in as a person.",
    );
  return { login, options };
}

/** Connects as agents do. */
async function toolsOf(
  options: McpClientOptions,
  signal: AbortSignal,
): Promise<{ readonly tools: readonly string[]; readonly problem: string | undefined }> {
  const client = createMcpClient(options);
  try {
    const [state] = await client.inspect(signal);
    return {
      tools: state?.tools ?? [],
      problem: state?.isAvailable ? undefined : state?.problems[0]?.message,
    };
  } finally {
    await client.close();
  }
}

function readLine({ input }: CommandContext, signal: AbortSignal): Promise<string> {
  const lines = createInterface({ input, terminal: false, signal });
  return new Promise((resolve) => {
    lines.once("line", (line) => {
      resolve(line);
      lines.close();
    });
  });
}
