import { keyPattern } from "../../base/names.ts";
import { isRecord } from "../../base/record.ts";
import type { McpSource, ToolTarget } from "../../protocol/enums.ts";
import { type ServerField, serverSettingsOf, toolSettings } from "./tool-settings.ts";

/** An MCP server as no tool writes it: `${NAME}` in a text stands for a variable of the environment. */
export interface McpServer {
  readonly name: string;
  readonly command?: string;
  readonly url?: string;
  readonly cwd?: string;
  readonly args: readonly string[];
  readonly env: Texts;
  readonly headers: Texts;
  /** Keys of the source that no other tool gets. */
  readonly left: readonly string[];
}

type Texts = Readonly<Record<string, string>>;
type Entry = Readonly<Record<string, unknown>>;

/** Thrown with the end of the sentence "servers.github …". Never holds a value, which may be a key. */
class ServerFault extends Error {}

/** Reads the servers of a settings file, and a sentence for each that must not or cannot be carried. */
export function readServers(
  source: McpSource,
  servers: unknown,
): { readonly servers: readonly McpServer[]; readonly leftOut: readonly string[] } {
  const { path, key } = serverSettingsOf(source);
  const leftOut: string[] = [];
  const read = Object.entries(isRecord(servers) ? servers : {}).flatMap(([name, entry]) => {
    try {
      return [toServer(source, name, entry)];
    } catch (error) {
      if (!(error instanceof ServerFault)) throw error;
      leftOut.push(`${path}: ${key}.${name.slice(0, 64)} ${error.message}`);
      return [];
    }
  });
  return { servers: read, leftOut };
}

function toServer(source: McpSource, name: string, written: unknown): McpServer {
  if (!/^\w[\w. @/-]{0,63}$/.test(name) || name === "__proto__")
    throw new ServerFault("has a name that is not carried: use letters, digits, - and _, at most 64.");
  if (!isRecord(written)) throw new ServerFault("is not a table of settings.");
  if (written.disabled === true || written.enabled === false)
    throw new ServerFault("is switched off there, and other tools would start it.");
  const { keys } = serverSettingsOf(source);
  const entry = source === "codex" ? fromCodex(written) : written;
  const { type = "http" } = entry;
  if (typeof type !== "string" || !/^(?:stdio|http|streamable-?http)$/i.test(type))
    throw new ServerFault("has a type that not every tool knows: stdio and http are carried.");
  if (written.cwd !== undefined && !keys.includes("cwd"))
    throw new ServerFault("has a cwd, which not every tool knows.");
  const { command, url, cwd, env } = entry;
  const texts = (field: ServerField, value: unknown): Texts => {
    if (value !== undefined && !isRecord(value)) throw new ServerFault(`has a ${field} that is not a table.`);
    return Object.fromEntries(
      Object.entries(value ?? {}).map(([key, text]) => [key, plainText(source, field, text)]),
    );
  };
  const { args = [] } = entry;
  if (!Array.isArray(args)) throw new ServerFault("has args that are not a list.");
  if ((command === undefined) === (url === undefined))
    throw new ServerFault("needs either a command or a url.");
  const variables: unknown = Array.isArray(env)
    ? Object.fromEntries(env.map((each) => [String(each), `\${${String(each)}}`]))
    : env;
  const server: McpServer = {
    name,
    ...(command === undefined ? {} : { command: plainText(source, "command", command) }),
    ...(url === undefined ? {} : { url: plainText(source, "url", url) }),
    ...(cwd === undefined ? {} : { cwd: folderText(source, cwd) }),
    args: args.map((each: unknown) => plainText(source, "args", each)),
    env: texts("env", variables),
    headers: texts("headers", entry.headers),
    left: Object.keys(written).filter((key) => !keys.includes(key) && !/^(?:dis|en)abled$/.test(key)),
  };
  const secret = secretIn(server);
  if (secret !== undefined)
    throw new ServerFault(
      `has a value in ${secret} that looks like a secret, and kit copies no secret: put it into a variable, and write \${NAME} there.`,
    );
  return server;
}

const anyVariable = /\$\{([^}]*)\}/g;
const plainVariable = /\$\{([A-Za-z_]\w*)\}/g;

/** A text with its variables as `${NAME}`. Anything else in `${…}` means something in one tool only. */
function plainText(source: McpSource, field: ServerField, written: unknown): string {
  if (typeof written !== "string") throw new ServerFault(`has something else than a text in ${field}.`);
  const { fills, prefix } = serverSettingsOf(source);
  return written.replace(anyVariable, (_, inside: string) => {
    const name = inside.startsWith(prefix) ? inside.slice(prefix.length) : "";
    if (fills.includes(field) && /^[A-Za-z_]\w*$/.test(name)) return `\${${name}}`;
    throw new ServerFault(`has a \${…} in ${field} that is no variable of the environment there.`);
  });
}

function folderText(source: McpSource, written: unknown): string {
  const own = "$" + "{workspaceFolder}/";
  const folder = typeof written === "string" && written.startsWith(own) ? written.slice(own.length) : written;
  return plainText(source, "cwd", folder);
}

const isAbsolute = /^(?:[/\\]|[A-Za-z]:[/\\])/;

/** The settings of a server as a tool writes them. A text: why it cannot have the server. */
export function renderServer(target: ToolTarget, server: McpServer): Entry | string {
  const { label, fills, prefix, keys } = toolSettings[target];
  try {
    const fill = (field: ServerField, text: string): string => {
      if (!text.includes("${")) return text;
      if (!fills.includes(field))
        throw new ServerFault(`needs a variable in ${field}, where ${label} replaces none.`);
      return text.replace(plainVariable, (_, name: string) => `\${${prefix}${name}}`);
    };
    const fillAll = (field: ServerField, texts: Texts): Texts =>
      Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, fill(field, text)]));
    const { command, url, cwd, args, env, headers } = server;
    if (cwd !== undefined && cwd !== "." && !keys.includes("cwd"))
      throw new ServerFault(`needs a cwd, which ${label} does not document.`);
    if (url !== undefined && target === "junie")
      throw new ServerFault(`has a url, and ${label} starts servers as processes only.`);
    if (target === "codex" && !/^[\w-]+$/.test(server.name))
      throw new ServerFault(`has a name that ${label} does not take: letters, digits, - and _.`);
    const type = target === "copilot" ? { type: url === undefined ? "stdio" : "http" } : typeOf(target, url);
    const entry = {
      ...type,
      ...(command === undefined ? {} : { command: fill("command", command) }),
      ...(args.length === 0 ? {} : { args: args.map((each) => fill("args", each)) }),
      ...(Object.keys(env).length === 0 ? {} : { env: fillAll("env", env) }),
      ...(cwd === undefined || cwd === "."
        ? {}
        : { cwd: (isAbsolute.test(cwd) ? "" : `\${workspaceFolder}/`) + fill("cwd", cwd) }),
      ...(url === undefined ? {} : { url: fill("url", url) }),
      ...(Object.keys(headers).length === 0 ? {} : { headers: fillAll("headers", headers) }),
    };
    return target === "codex" ? toCodex(entry) : entry;
  } catch (error) {
    if (error instanceof ServerFault) return error.message;
    throw error;
  }
}

function typeOf(target: ToolTarget, url: string | undefined): Entry {
  return target === "fw_c" && url !== undefined ? { type: "http" } : {};
}

const bearer = /^Bearer \$\{([A-Za-z_]\w*)\}$/;
const whole = /^\$\{([A-Za-z_]\w*)\}$/;

/** Codex has keys for variables, and replaces nothing in texts. */
function toCodex({ env = {}, headers = {}, ...entry }: Entry & { env?: Texts; headers?: Texts }): Entry {
  const literal: Record<string, Record<string, string>> = { env: {}, http_headers: {}, env_http_headers: {} };
  const passed: string[] = [];
  let token: string | undefined;
  for (const [name, text] of Object.entries(env)) {
    if (text === `\${${name}}`) passed.push(name);
    else if (!text.includes("${")) Object.assign(literal.env ?? {}, { [name]: text });
    else throw new ServerFault(`gives env.${name} another variable, and Codex passes variables on by name.`);
  }
  for (const [name, text] of Object.entries(headers)) {
    const variable = whole.exec(text)?.[1];
    if (name === "Authorization" && bearer.test(text)) token = bearer.exec(text)?.[1];
    else if (variable !== undefined) Object.assign(literal.env_http_headers ?? {}, { [name]: variable });
    else if (!text.includes("${")) Object.assign(literal.http_headers ?? {}, { [name]: text });
    else throw new ServerFault(`mixes a variable and text in headers.${name}, which Codex cannot.`);
  }
  return {
    ...entry,
    ...(passed.length === 0 ? {} : { env_vars: passed }),
    ...(token === undefined ? {} : { bearer_token_env_var: token }),
    ...Object.fromEntries(Object.entries(literal).filter(([, texts]) => Object.keys(texts).length > 0)),
  };
}

function fromCodex(entry: Entry): Entry {
  const { env, env_vars, http_headers, env_http_headers, bearer_token_env_var: token, ...rest } = entry;
  const variable = (name: unknown): string => {
    if (typeof name === "string" && /^[A-Za-z_]\w*$/.test(name)) return `\${${name}}`;
    throw new ServerFault("names a variable in a form that is not carried.");
  };
  if (JSON.stringify([env, http_headers]).includes("${"))
    throw new ServerFault("has a variable in a text, which Codex does not replace.");
  const passed = Array.isArray(env_vars) ? env_vars.map((name) => [String(name), variable(name)]) : [];
  const held = Object.entries(isRecord(env_http_headers) ? env_http_headers : {});
  return {
    ...rest,
    ...(env === undefined && passed.length === 0
      ? {}
      : { env: { ...record(env), ...Object.fromEntries(passed) } }),
    headers: {
      ...record(http_headers),
      ...Object.fromEntries(held.map(([name, value]) => [name, variable(value)])),
      ...(token === undefined ? {} : { Authorization: `Bearer ${variable(token)}` }),
    },
  };
}

function record(value: unknown): Entry {
  return isRecord(value) ? value : {};
}

const secretName =
  /(?:^|[_-])(?:api[_-]?key|key|token|secret|pass(?:word|wd|phrase)?|pwd|auth(?:orization)?|credentials?|bearer|cookie|pat|jwt|dsn)s?$|passw(?:or)?ds?$/i;
/** Their values are often short. */
const passwordName = /pass(?:word|wd|phrase)?s?$|pwd$/i;
const privateKey = /-----BEGIN [A-Z ]*PRIVATE KEY/;
/** The password in `postgres://user:password@host`, but not the path behind a port. */
const passwordInAddress = /:\/\/[^\s/@:]{0,256}:(?!\d{1,5}(?:[/?#]|$))[^\s@]{1,256}@/;

/** The place of a text that looks like a secret: by its name, or by its form. */
function secretIn({ command = "", url = "", cwd = "", args, env, headers }: McpServer): string | undefined {
  const isSecret = (name: string, text: string): boolean => {
    const value = text
      .replace(plainVariable, "")
      .replace(/^(?:bearer|basic|token)\s+/i, "")
      .trim();
    if (value.split(/[\s=:,;"'/@{}]+/).some((word) => keyPattern.test(word))) return true;
    const least = passwordName.test(name) ? 4 : 8;
    return secretName.test(name) && value.length >= least && !/^(?:https?:|\.{0,2}\/|~\/|-)/.test(value);
  };
  const holdsOne = (text: string): boolean => {
    const literal = text.replace(plainVariable, "");
    return privateKey.test(literal) || passwordInAddress.test(literal);
  };
  for (const [table, texts] of Object.entries({ env, headers }))
    for (const [name, text] of Object.entries(texts))
      if (holdsOne(text) || isSecret(name, text)) return `${table}.${name}`;
  for (const [index, text] of [command, ...args].entries()) {
    const [, flag, value] = /^-*([\w-]+)[=:](.*)$/s.exec(text) ?? [];
    const before = args[index - 2] ?? "";
    if (holdsOne(text) || isSecret(flag ?? (before.startsWith("-") ? before : ""), value ?? text))
      return index === 0 ? "command" : `args[${index - 1}]`;
  }
  if (isSecret("", cwd)) return "cwd";
  const address = URL.parse(url.replace(plainVariable, "x"));
  const [, userInfo = ""] = /:\/\/([^/?#]*)@/.exec(url.replace(plainVariable, "")) ?? [];
  const hasUser = [userInfo, address?.username ?? "", address?.password ?? ""].some(
    (part) => !/^[:x]*$/.test(part),
  );
  const query = [...new URLSearchParams(url.slice(url.indexOf("?") + 1))].some(([name, value]) =>
    isSecret(name, value),
  );
  return hasUser || query || holdsOne(url) || isSecret("", url) ? "url" : undefined;
}
