import { resolve } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { ServerLogin } from "../auth/server-login.ts";
import { limits, times } from "../limits.ts";
import { faultOfServer, hasAuthorization, type McpServerConfig, type OAuthSettings } from "./mcp-config.ts";

/** A server's configuration with its variables replaced. */
export interface ServerSettings {
  readonly name: string;
  readonly endpoint:
    | {
        readonly kind: "process";
        readonly command: string;
        readonly args: readonly string[];
        readonly env: Readonly<Record<string, string>>;
        readonly cwd: string;
      }
    | {
        readonly kind: "address";
        readonly url: URL;
        readonly headers: Readonly<Record<string, string>>;
        /** Absent if the headers authorize the requests, or if this process knows no person's logins. */
        readonly login?: ServerLogin | undefined;
      };
  readonly allow?: readonly string[] | undefined;
  readonly deny?: readonly string[] | undefined;
  /** The most tools that kit offers. */
  readonly maxTools: number;
  readonly connectTimeoutMs: number;
  readonly listTimeoutMs: number;
  readonly callTimeoutMs: number;
  /** Whether its calls have persons whom it can ask. */
  readonly canAsk: boolean;
  /** Values to mask in every text. */
  readonly secrets: readonly string[];
  /** A sentence that says why the configuration makes the server unusable. */
  readonly fault?: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

export interface SettingsContext {
  readonly root: string;
  readonly env: Environment;
  readonly maxTools?: number;
  /** Whether calls have persons whom the server can ask. Default: false. */
  readonly canAsk?: boolean | undefined;
  /** The folder of the person's logins, outside of the project. Default: servers with a login cannot be used. */
  readonly logins?: string | undefined;
}

/**
 * Replaces the variables in a server's configuration. Throws `invalid_request` for an invalid configuration. A missing
 * variable makes only this server unusable, not the agents.
 */
export function toServerSettings(
  name: string,
  config: McpServerConfig,
  context: SettingsContext,
): ServerSettings {
  const issue = faultOfServer(name, config);
  if (issue !== undefined)
    throw new KitError({ code: "invalid_request", message: `mcp.servers.${name} ${issue}.` });
  const values = createValues(context.env);
  const limit = config.timeout_seconds === undefined ? undefined : config.timeout_seconds * 1000;
  const endpoint =
    config.url === undefined
      ? toProcess(config, context, values)
      : toAddress(config, values, (url, settings) => createLogin({ name, url, settings }, context));
  const fault = values.fault();
  const configured = values.secrets();
  const login = endpoint.kind === "address" ? endpoint.login : undefined;
  let [secrets, tokens] = [configured, login?.secrets];
  return {
    name,
    endpoint,
    allow: config.allow,
    deny: config.deny,
    maxTools: context.maxTools ?? limits.tools,
    connectTimeoutMs: limit ?? times.connect,
    listTimeoutMs: limit ?? times.list,
    callTimeoutMs: limit ?? times.call,
    canAsk: context.canAsk ?? false,
    get secrets() {
      // A mask is built once for each list.
      if (tokens !== login?.secrets)
        [secrets, tokens] = [[...configured, ...(login?.secrets ?? [])], login?.secrets];
      return secrets;
    },
    fault,
  };
}

function toProcess(
  config: McpServerConfig,
  context: { readonly root: string; readonly env: Environment },
  values: Values,
): ServerSettings["endpoint"] {
  const listed = config.env ?? [];
  const pairs = Array.isArray(listed)
    ? listed.map((variable: string) => [variable, `\${${variable}}`] as const)
    : Object.entries(listed as Readonly<Record<string, string>>);
  return {
    kind: "process",
    command: config.command ?? "",
    args: config.args ?? [],
    env: { ...searchPath(context.env), ...values.fill(pairs) },
    cwd: resolve(context.root, config.cwd ?? "."),
  };
}

function toAddress(
  { url = "", oauth, ...config }: McpServerConfig,
  values: Values,
  toLogin: (url: URL, settings: OAuthSettings) => ServerLogin | undefined,
): ServerSettings["endpoint"] {
  const headers = values.fill(Object.entries(config.headers ?? {}), { secret: true });
  for (const [name, value] of Object.entries(headers)) {
    // Check here and do not show the value; the error of `fetch` would quote it.
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) || /[^\t\x20-\x7e\x80-\xff]/.test(value)) {
      values.complain(`The header "${name.slice(0, 100)}" has characters that a header cannot carry.`);
    }
  }
  const { client_secret: written } = oauth ?? {};
  const filled = written === undefined ? {} : values.fill([["client_secret", written]], { secret: true });
  const address = new URL(url);
  const login = hasAuthorization(headers) ? undefined : toLogin(address, { ...oauth, ...filled });
  return { kind: "address", url: address, headers, login };
}

function createLogin(
  of: Pick<ConstructorParameters<typeof ServerLogin>[0], "name" | "url" | "settings">,
  { root, logins }: SettingsContext,
): ServerLogin | undefined {
  if (logins === undefined && of.settings.grant !== "client_credentials") return undefined;
  return new ServerLogin({ ...of, root, folder: logins ?? "" });
}

// The server needs `PATH` to find programs; no other variable is passed on by default.
function searchPath(env: Environment): Readonly<Record<string, string>> {
  const names = process.platform === "win32" ? ["PATH", "Path", "PATHEXT", "SystemRoot"] : ["PATH"];
  return Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}

interface Values {
  /** Replaces the variables in texts by name; with `secret`, every variable's value is a secret. */
  fill(
    pairs: readonly (readonly [string, string])[],
    options?: { readonly secret?: boolean },
  ): Readonly<Record<string, string>>;
  complain(fault: string): void;
  secrets(): readonly string[];
  fault(): string | undefined;
}

const secretName = /key|token|secret|pass|auth|cred|cookie|session|private|bearer/i;
const variable = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

function createValues(env: Environment): Values {
  const secrets = new Set<string>();
  const missing = new Set<string>();
  const faults: string[] = [];
  const push = (text: string): void => {
    // In `Bearer <token>`, the token alone is a secret too.
    for (const part of [text, ...text.split(/\s+/)]) if (part.length >= 8 || part === text) secrets.add(part);
  };
  return {
    fill(pairs, { secret = false } = {}) {
      const filled = pairs.map(([name, text]) => {
        const value = text.replace(variable, (_, variableName: string) => {
          const set = Object.hasOwn(env, variableName) ? env[variableName] : undefined;
          if (set === undefined) missing.add(variableName);
          else if (secret || secretName.test(variableName)) push(set);
          return set ?? "";
        });
        if (secretName.test(name)) push(value);
        return [name, value] as const;
      });
      return Object.fromEntries(filled);
    },
    complain: (fault) => faults.push(fault),
    secrets: () => [...secrets].filter((value) => value !== ""),
    fault() {
      const names = [...missing].join(", ");
      return names === ""
        ? faults[0]
        : `It needs ${names}, which ${missing.size === 1 ? "is" : "are"} not set.`;
    },
  };
}
