import { createSecretMask, type SecretMask } from "../../agents/secrets.ts";
import { keyPattern } from "../../base/names.ts";
import { percentDecoded } from "../../base/percent.ts";
import type { KitConfig } from "../config/config-schema.ts";
import { toEngineTable } from "../config/engine-config.ts";
import { secretsOfTelemetry } from "../telemetry/telemetry-settings.ts";

/** The tables of a configuration that can hold secrets. */
export type SecretConfig = Pick<KitConfig, "providers" | "store" | "engine" | "mcp" | "server">;

type Environment = Readonly<Record<string, string | undefined>>;

/** Words that mark a variable as a secret: `OPENAI_API_KEY`, `STRIPE_SECRET_LIVE`, `SMTP_PASS`. */
const secretWords =
  /(?:^|_)(?:API_?KEYS?|(?:ACCESS|PRIVATE|SIGNING|ENCRYPTION|MASTER|SECRET|SERVICE|DEPLOY|LICENSE|HMAC|HOST|SSH|GPG|PGP|JWT|AUTH|ACCOUNT|SESSION)_?KEYS?|TOKENS?|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|PASSCODE|PASS|PWD|CREDENTIALS?|CREDS?|AUTH|BEARER|JWT|PAT|COOKIE|DSN|WEBHOOK|CONNECTION_?STRING)(?:_|$)/;

/** Names such as `STRIPE_KEY` and `KEY_1`, which can also name something other than a secret, such as a column. */
const keyAtTheEnd = /(?:^|_)KEYS?(?:_(?:ID|V?\d+|PROD|PRODUCTION|DEV|DEVELOPMENT|STAGING|TEST|LIVE))?$/;

/** Names of variables that hold the path, lifetime or name of a secret, and not the secret. */
const aboutOne =
  /(?:^|_)(?:FILE|PATH|DIR|FOLDER|NAME|LIMIT|LENGTH|SIZE|TTL|EXPIRY|EXPIRES|EXPIRATION|TIMEOUT|TYPE|ALG|ALGORITHM|METHOD|MODE|PROVIDER|ENABLED|DISABLED|COUNT|MAX|MIN|PREFIX|HEADER|ISSUER|AUDIENCE|DOMAIN|REGION|SOCK|COMMAND|HELPER)$/;

/** Shorter values are rarely keys, and masking them would mask ordinary words. */
const minLength = 8;

/** From this length on, a text without a digit counts as a key if its name is ambiguous. */
const minDoubtfulLength = 16;

/** Values of examples and development machines, which are ordinary words in code and text. */
const ordinary = new Set(
  "password passw0rd changeme changeit change-me change_me postgres postgresql administrator localhost development production undefined disabled required optional anonymous username customer example placeholder redacted testtest test1234 12345678 123456789 1234567890 your-key your_key your-api-key your_api_key your-secret your-token xxxxxxxx".split(
    " ",
  ),
);

/** Creates a mask for the secrets in a configuration, its environment and the project's files of variables. */
export function maskOf({
  config,
  environment,
  fileSecrets = [],
}: {
  readonly config: SecretConfig;
  readonly environment: Environment;
  /** The values in the project's files of variables, whether or not they were read. */
  readonly fileSecrets?: readonly string[];
}): SecretMask {
  return createSecretMask([...knownSecrets(environment, config), ...fileSecrets]);
}

/**
 * Returns the secrets in the environment and the configuration, recognized by their name, their form or
 * their place, and the passwords in addresses, such as that of a database. Each has at least 8
 * characters and is not an ordinary word.
 */
export function knownSecrets(env: Environment, config: SecretConfig = {}): readonly string[] {
  const values = new Set<string>();
  const add = (value: string): void => {
    const trimmed = value.trim();
    if (trimmed.length >= minLength && !ordinary.has(trimmed.toLowerCase())) values.add(trimmed);
  };
  for (const [name, value = ""] of Object.entries(env)) {
    if (isSecret(name, value)) for (const part of partsOf(value)) add(part);
    for (const password of passwordsIn(value)) add(password);
  }
  for (const key of (env.KIT_API_KEYS ?? "").split(/[\s,]+/)) add(key);
  for (const key of config.server?.api_keys ?? []) add(key);
  for (const key of secretsOfTelemetry(env)) add(key);
  for (const { api_key, headers } of Object.values(config.providers ?? {})) {
    if (api_key !== undefined) add(api_key);
    for (const value of Object.values(headers ?? {})) add(lastWord(value));
  }
  for (const value of ofServers(config.mcp, env)) add(value);
  const { url, direct_url } = toEngineTable(config.engine);
  for (const address of [config.store, url, direct_url]) {
    if (typeof address === "string") for (const password of passwordsIn(address)) add(password);
  }
  return [...values];
}

/**
 * The secrets among the variables of a file that is there to keep them: known ones, and long texts of letters
 * and digits whatever they are called.
 */
export function secretsInFile(variables: Environment): readonly string[] {
  const isRandom = (value: string): boolean =>
    value.length >= minDoubtfulLength && /\d/.test(value) && /[a-z]/i.test(value) && !/\s/.test(value);
  const randomValues = Object.values(variables).filter((value = "") => isRandom(value) && !isNoKey(value));
  return [...new Set([...knownSecrets(variables), ...randomValues.filter((value) => value !== undefined)])];
}

/** Whether a variable holds a key, a password or another secret, however short. */
export function isSecretVariable(name: string, value: string): boolean {
  if (value === "") return false;
  const words = wordsOf(name);
  const isNamed = (secretWords.test(words) || keyAtTheEnd.test(words)) && !/^(?:OLD)?PWD$/.test(words);
  return (isNamed && !aboutOne.test(words)) || isSecret(name, value) || passwordsIn(value).some(Boolean);
}

/** `npm_config__authToken` has its words in another spelling. */
function wordsOf(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, "_");
}

function isSecret(name: string, value: string): boolean {
  if (keyPattern.test(value.trim())) return true;
  const words = wordsOf(name);
  if (/^(?:OLD)?PWD$/.test(words) || aboutOne.test(words) || isNoKey(value)) return false;
  if (secretWords.test(words)) return true;
  return keyAtTheEnd.test(words) && (value.length >= minDoubtfulLength || /\d/.test(value));
}

/** A path, a number or a plain address. Keys inside an address are found separately. */
function isNoKey(value: string): boolean {
  const isAddress = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) && !/hook/i.test(value);
  return isAddress || /^(?:\.{0,2}\/|~|[A-Za-z]:\\)/.test(value) || /^\d{1,15}$/.test(value);
}

/** A list of keys is each of them; of a document, such as that of a service account, its long texts. */
function partsOf(value: string): readonly string[] {
  const trimmed = value.trim();
  if (trimmed.startsWith("{")) {
    try {
      const texts = Object.entries(JSON.parse(trimmed) as Record<string, unknown>).filter(
        (field): field is [string, string] => typeof field[1] === "string",
      );
      return [trimmed, ...texts.filter(([name, text]) => isSecret(name, text)).map(([, text]) => text)];
    } catch {
      return [trimmed];
    }
  }
  const list = trimmed.split(/[\s,;]+/);
  const isList = list.length > 1 && list.every((part) => part.length >= minDoubtfulLength);
  const token = /^(?:Bearer|Basic|Token)\s+(\S+)$/i.exec(trimmed)?.[1];
  return [trimmed, ...(isList ? list : []), ...(token === undefined ? [] : [token])];
}

/** The second word of "Bearer abc…" is the key. */
function lastWord(value: string): string {
  return value.slice(value.lastIndexOf(" ") + 1);
}

/** The variables and headers of MCP servers: all headers, and variables that speak of a secret. */
function ofServers(mcp: SecretConfig["mcp"], env: Environment): readonly string[] {
  return Object.values(mcp?.servers ?? {}).flatMap(({ env: given = {}, headers = {}, oauth }) => {
    const filled = (text: string): string =>
      text.replace(/\$\{(\w+)\}/g, (_, name: string) => env[name] ?? "");
    const variables = (Array.isArray(given) ? [] : Object.entries(given)) as readonly (readonly [
      string,
      string,
    ])[];
    return [
      ...Object.values(headers).map((value) => lastWord(filled(value))),
      filled(oauth?.client_secret ?? ""),
      ...variables
        .map(([name, value]) => [name, filled(value)] as const)
        .filter(([name, value]) => isSecret(name, value))
        .map(([, value]) => value),
    ];
  });
}

/** Passwords in addresses and in connection strings, as written and as meant. */
function passwordsIn(text: string): readonly string[] {
  const secrets: string[] = [];
  if (/^[a-z][a-z0-9+.-]*:\/\/[^@/]*@/i.test(text)) {
    const { username = "", password = "" } = URL.parse(text) ?? {};
    secrets.push(password);
    // Without a password, the name is the key: `https://<token>@host`.
    if (password === "" && username.length >= minDoubtfulLength && /\d/.test(username))
      secrets.push(username);
  }
  // Parsers find another password, or none, in an address whose password is not percent-encoded, or that names several hosts.
  const [, written] =
    /^\s*(?:postgres(?:ql)?|mysql|mariadb|rediss?|mongodb(?:\+srv)?|amqps?):\/\/[^:@/?#]*:(.+)@/is.exec(
      text,
    ) ?? [];
  if (written !== undefined) secrets.push(written);
  const declared =
    /[?&;,\s](?:password|passwd|pwd|secret|token|access_?token|api_?key|key|sig|signature|account_?key|shared_?access_?key)=([^&;,\s]+)/gi;
  if (/[=]/.test(text)) for (const [, value = ""] of `;${text}`.matchAll(declared)) secrets.push(value);
  return secrets.flatMap((password) => [password, percentDecoded(password)]);
}
