import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ToolDefinition } from "../../../agents/define/tool.ts";
import { createToolContext } from "../../../agents/define/tool-context.ts";
import { createJsonValidator } from "../../../app/runtime/validate-json.ts";
import { createMcpClient } from "../../create-mcp-client.ts";
import { toServerSettings } from "../../servers/server-settings.ts";
import { logIn } from "../log-in.ts";

// A process that the official suite starts: an agent's calls, and a person who logs in whenever kit asks for it.
const url = process.argv.at(-1) ?? "";
const given = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}") as Readonly<Record<string, string>>;
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";

/** The authorization server that a person would name in the configuration. */
async function findIssuer(): Promise<string> {
  const { pathname } = new URL(url);
  const metadata = await fetch(new URL(`/.well-known/oauth-protected-resource${pathname}`, url));
  const { authorization_servers } = (await metadata.json()) as { authorization_servers?: readonly string[] };
  return authorization_servers?.[0] ?? "";
}

const secret =
  given.client_secret === undefined
    ? undefined
    : {
        issuer: await findIssuer(),
        client_id: given.client_id,
        client_secret: given.client_secret,
        ...(scenario.includes("client-credentials") ? { grant: "client_credentials" as const } : {}),
      };
const oauth =
  secret ??
  (scenario === "auth/basic-cimd"
    ? { client_id: "https://conformance-test.local/client-metadata.json" }
    : undefined);
const server = { url, ...(oauth === undefined ? {} : { oauth }) };
const options = {
  ...{ config: { servers: { s: server } }, root: process.cwd(), env: {} },
  logins: await mkdtemp(join(tmpdir(), "kit-conformance-")),
  validateJson: createJsonValidator({ isLenient: true }),
};
const { endpoint } = toServerSettings("s", server, options);
const login = endpoint.kind === "address" ? endpoint.login : undefined;

/** Logs in if a text asks for it, at most three times. */
let logins = 0;
async function obey(text: string): Promise<boolean> {
  if (!text.includes("kit mcp login") || login === undefined || logins === 3) return false;
  logins += 1;
  const show = async (address: URL): Promise<void> => {
    const { headers } = await fetch(address, { redirect: "manual" });
    await fetch(headers.get("location") ?? "").catch(() => undefined);
  };
  await logIn(login, { show: (address) => void show(address), signal: AbortSignal.timeout(20_000) });
  return true;
}

// After a failure a client waits for a second, so each attempt has another.
for (let isDone = false; !isDone; ) {
  const client = createMcpClient(options);
  try {
    const [state] = await client.inspect();
    const text = state?.problems.map(({ message }) => message).join(" ") ?? "";
    isDone = state?.isAvailable ?? false;
    if (!isDone && !(await obey(text))) throw new Error(text);
    for (const tool of (await client.tools()) as readonly ToolDefinition[]) {
      if (!isDone) break;
      const output = JSON.stringify(await tool.execute({}, createToolContext({})));
      if (await obey(output)) isDone = false;
    }
  } finally {
    await client.close();
  }
}
