import { isKnownProvider, knownProviders } from "../../models/provider-config.ts";
import type { LoadedKitConfig } from "../config/config-schema.ts";
import type { Environment } from "../config/environment.ts";
import { isSecretVariable } from "../runtime/known-secrets.ts";
import { identityOf, type KeyTarget } from "./trust.ts";

/** A variable that a file of the repository sets. */
export interface FileVariable {
  readonly value: string;
  readonly file: string;
}

export interface KeySources {
  readonly config: LoadedKitConfig;
  /** The configuration of the repository; undefined if the configuration is not a file of the repository. */
  readonly configName: string | undefined;
  /** The variables that the person has set, with their first values: code of a configuration may change them. */
  readonly own: Environment;
  /** The variables that files of the repository have added or changed. */
  readonly fromFiles: ReadonlyMap<string, FileVariable>;
}

/** Returns the keys of the person's environment with the addresses that files of the repository name for them. */
export function keyTargets(sources: KeySources): readonly KeyTarget[] {
  const { configName, own } = sources;
  const ownAddresses = new Set(addressesIn(own));
  const seen = new Set<string>();
  return [...ofVariables(sources), ...(configName === undefined ? [] : ofConfig(sources, configName))].filter(
    (target) => {
      const identity = identityOf(target);
      if (ownAddresses.has(target.address) || seen.has(identity)) return false;
      seen.add(identity);
      return true;
    },
  );
}

/** The addresses that the person's own variables name: a configuration may repeat them. */
export function addressesIn(own: Environment): readonly string[] {
  return Object.entries(own).flatMap(([name, value = ""]) =>
    addressName.test(name.toUpperCase()) ? [plain(value.trim())] : [],
  );
}

/** The last words of variables with addresses, or with files of settings that can contain addresses. */
export const addressName =
  /(?:^|_)(?:CONFIG(?:_?(?:FILE|PATH|DIR|HOME))?|PROFILE|UR[LI]|HOSTS?|HOSTNAME|ENDPOINTS?|DOMAIN|ADDR(?:ESS)?|BASE|SERVER|PROXY|ORIGIN|GATEWAY)$|^PG(?:HOST|HOSTADDR|SERVICE)$/;

/** The last words of variables that programs put into host names. */
const hostPartName = /(?:^|_)(?:REGION|LOCATION|CLUSTER|SITE|SUBDOMAIN|ACCOUNT|APP_ID)$/;

/** Whether a variable can choose the host of a connection: by characters that end a label, or because a stranger can own the name. */
function choosesHost(name: string, value: string): boolean {
  return /(?:^|_)RESOURCE_NAME$/.test(name) || (hostPartName.test(name) && !/^[\w-]+$/.test(value));
}

/**
 * Variables that decide where every connection of a process leads and whose certificates it believes, where it looks for its
 * settings, which code a program runs, or which files it writes.
 */
const steering = new RegExp(
  `^(?:${[
    "NODE_(?:OPTIONS|PATH|EXTRA_CA_CERTS|TLS_REJECT_UNAUTHORIZED|USE_ENV_PROXY|USE_SYSTEM_CA|REPL_EXTERNAL_MODULE)",
    "NODE_(?:V8_COVERAGE|COMPILE_CACHE|REDIRECT_WARNINGS)|PG(?:PASS|SERVICE)FILE|GOFLAGS|MAKEFLAGS|HOSTALIASES",
    "OPENSSL_(?:CONF|MODULES|ENGINES)|SSL_CERT_(?:FILE|DIR)|SSLKEYLOGFILE|(?:CURL|REQUESTS)_CA_BUNDLE|CURL_HOME",
    "(?:HTTPS?|ALL|FTP|WSS?|GRPC|SOCKS|GLOBAL_AGENT_HTTPS?)_PROXY",
    "PATH|PATHEXT|COMSPEC|SYSTEMROOT|SHELL|HOME|USERPROFILE|(?:LOCAL)?APPDATA|XDG_\\w+|TMPDIR|TE?MP",
    "IFS|ENV|BASH_ENV|BASH_FUNC\\S*|SHELLOPTS|PROMPT_COMMAND|ZDOTDIR|LD_\\w+|DYLD_\\w+|GCONV_PATH|GLIBC_TUNABLES",
    "GIT_(?!AUTHOR|COMMITTER|COMMIT$|SHA$|BRANCH$|TAG$)\\w+|SSH_(?:ASKPASS\\w*|AUTH_SOCK)|EDITOR|VISUAL|PAGER|BROWSER|LESS(?:OPEN|CLOSE)",
    "PYTHON(?:PATH|HOME|STARTUP|USERBASE|INSPECT|BREAKPOINT|WARNINGS)|PERL5(?:LIB|OPT|DB)|PERLLIB|RUBY(?:LIB|OPT)",
    "JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|NPM_CONFIG_\\w+|DOCKER_HOST|KUBECONFIG",
  ].join("|")})$`,
);

function isSteering(name: string, value: string): boolean {
  if (name === "NODE_TLS_REJECT_UNAUTHORIZED") return value === "0";
  if (name === "KIT_RECORD") return /^[/\\~]|^[a-z]:|\.\./i.test(value);
  return steering.test(name);
}

/** The variables with addresses that kit itself sends keys to; its other ones are of its own servers and databases. */
const addressesOfKit = new Set(["KIT_URL", "KIT_RESTATE_INGRESS", "KIT_RESTATE_ADMIN"]);

function* ofVariables({ own, fromFiles }: KeySources): Iterable<KeyTarget> {
  for (const [variable, { value, file }] of fromFiles) {
    const name = variable.toUpperCase();
    const text = value.trim();
    const source = `${variable} in ${file}`;
    if (text === "") continue;
    if (isSteering(name, text)) {
      yield { address: plain(text), source };
      continue;
    }
    yield* ofDatabase(text, source, own);
    if (
      name.startsWith("KIT_")
        ? !addressesOfKit.has(name)
        : !addressName.test(name) && !choosesHost(name, text) && !/^\w[\w+.-]*:\/\//.test(text)
    )
      continue;
    yield* toTargets(keysOfVendor(vendorOf(name), own), text, source);
  }
}

function* ofConfig({ config, own, fromFiles }: KeySources, file: string): Iterable<KeyTarget> {
  const keysIn = (texts: readonly (string | undefined)[]): readonly string[] => keysWithin(texts, own);
  const at = (setting: string): string => `${setting} in ${file}`;
  for (const [name, { base_url, api_key, headers = {} }] of Object.entries(config.providers ?? {})) {
    if (base_url === undefined) continue;
    const provider = name.toLowerCase();
    const variables: readonly string[] = isKnownProvider(provider) ? knownProviders[provider].keys : [];
    const used = variables.find((key) => own[key] || fromFiles.get(key)?.value);
    const keys = api_key === undefined && used !== undefined && own[used] ? [used] : [];
    const given = keysIn([api_key, ...Object.values(headers)]);
    yield* toTargets([...keys, ...given], base_url, at(`providers.${name}.base_url`));
  }
  for (const [name, { url, headers = {}, command, args = [], env = [], oauth = {} }] of Object.entries(
    config.mcp?.servers ?? {},
  )) {
    const source = at(`mcp.servers.${name}`);
    const texts = [...Object.values(headers), ...valuesOf(env)];
    const filled = texts.flatMap(namesWithin);
    const isSent = (key: string): boolean =>
      Boolean(own[key]) && (url !== undefined || isSecretVariable(key, own[key] ?? ""));
    const keys = [...filled, ...namesOf(env)].filter(isSent);
    yield* toTargets([...keys, ...keysIn([...texts, ...args])], url ?? [command, ...args].join(" "), source);
    const { client_secret: secret = "", issuer = "" } = oauth;
    const secretKeys = [...namesWithin(secret).filter((key) => own[key]), ...keysIn([secret])];
    yield* toTargets(secretKeys, issuer, at(`mcp.servers.${name}.oauth.issuer`));
  }
  const { env = [], api_url, domain, sandbox_url } = config.sandbox?.options ?? {};
  const kind = config.agent?.sandbox;
  if (typeof kind === "string" && kind !== "virtual" && kind !== "local") {
    const keys = keysOfVendor(kind.toUpperCase(), own);
    for (const [option, address] of Object.entries({ api_url, domain, sandbox_url }))
      if (address !== undefined) yield* toTargets(keys, address, at(`sandbox.options.${option}`));
  }
  const passed = namesOf(env).filter((key) => isSecretVariable(key, own[key] ?? ""));
  yield* toTargets(
    [...passed, ...keysIn(valuesOf(env))],
    "the commands of agents",
    at("sandbox.options.env"),
  );
  const { url, direct_url, restate = {} } = config.engine ?? {};
  for (const [setting, address] of Object.entries({
    "engine.url": url,
    "engine.direct_url": direct_url,
    store: config.store,
  }))
    if (typeof address === "string") yield* ofDatabase(address, at(setting), own);
  for (const [setting, address] of Object.entries({ ingress: restate.ingress, admin: restate.admin }))
    if (address !== undefined)
      yield* toTargets(keysOfVendor("KIT_RESTATE", own), address, at(`engine.restate.${setting}`));
}

/** The driver sends `PGPASSWORD` to a database whose address has no password. */
function ofDatabase(address: string, source: string, own: Environment): readonly KeyTarget[] {
  const needsPassword = /^\s*postgres(?:ql)?:/i.test(address) && !URL.parse(address)?.password;
  return toTargets(needsPassword && own.PGPASSWORD ? ["PGPASSWORD"] : [], address, source);
}

function toTargets(keys: readonly string[], address: string, source: string): readonly KeyTarget[] {
  return keys.flatMap((key) =>
    isOwnAddress(address, key) ? [] : [{ key, address: plain(address), source }],
  );
}

/** Words for the same vendor in names of variables. */
const vendors: Readonly<Record<string, string>> = { GEMINI: "GOOGLE", LANGSMITH: "LANGCHAIN", GH: "GITHUB" };

function vendorOf(name: string): string {
  if (name.startsWith("KIT_")) return name.startsWith("KIT_RESTATE_") ? "KIT_RESTATE" : "KIT";
  if (/^PG[A-Z]+$/.test(name)) return "PG";
  const [word = ""] = name.split("_", 1);
  return vendors[word] ?? word;
}

function keysOfVendor(vendor: string, own: Environment): readonly string[] {
  return Object.entries(own).flatMap(([name, value = ""]) => {
    const upper = name.toUpperCase();
    const isKey = isSecretVariable(name, value) || upper === "PGPASSWORD" || /_HEADERS$/.test(upper);
    return value !== "" && vendorOf(upper) === vendor && isKey ? [name] : [];
  });
}

/** Shorter values are found in too many texts. */
const minLength = 8;

/** The person's keys whose value a text has: code of a configuration has read them from the environment. */
function keysWithin(texts: readonly (string | undefined)[], own: Environment): readonly string[] {
  const whole = texts.filter((text) => text !== undefined).join("\n");
  if (whole === "") return [];
  return Object.entries(own).flatMap(([name, value = ""]) =>
    value.length >= minLength && whole.includes(value) && isSecretVariable(name, value) ? [name] : [],
  );
}

/** The names in `${NAME}`. */
function namesWithin(text: string): readonly string[] {
  return [...text.matchAll(/\$\{(\w+)\}/g)].map(([, key = ""]) => key);
}

type Variables = readonly string[] | Readonly<Record<string, string>>;

function namesOf(env: Variables): readonly string[] {
  return Array.isArray(env) ? env : [];
}

function valuesOf(env: Variables): readonly string[] {
  return Array.isArray(env) ? [] : Object.values(env);
}

/** Whether an address is that of the provider that a key is for. */
function isOwnAddress(address: string, key: string): boolean {
  const origin = URL.parse(address)?.origin;
  const vendor = vendorOf(key.toUpperCase());
  return Object.values(knownProviders).some(
    ({ baseUrl, keys }) =>
      new URL(baseUrl).origin === origin && keys.some((each) => vendorOf(each) === vendor),
  );
}

const secretParameter = /([?&][^=&]*(?:pass|pwd|secret|token|key|sig|auth)[^=&]*=)[^&]*/gi;

/** Without a user and secrets. The query stays: in the address of a database, it can name another host. */
export function plain(address: string): string {
  const text = address.trim();
  const url = /^[a-z][\w+.-]*:\/\//i.test(text) ? URL.parse(text) : null;
  if (url === null) return text.replace(/^([a-z][\w+.-]*:\/\/).*@/is, "$1");
  return `${url.protocol}//${url.host}${url.pathname}${url.search.replaceAll(secretParameter, "$1***")}`;
}
