import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { basename, dirname, extname, join, resolve, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { parseEnv } from "node:util";
import { isSecretFile } from "../../agents/policy/protected-paths.ts";
import { attempt } from "../../base/attempt.ts";
import { toSentence } from "../../base/error-text.ts";
import { KitError, type KitErrorInit } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import type { ErrorIssue } from "../../protocol/errors.ts";
import { secretsInFile } from "../runtime/known-secrets.ts";
import { AgentWrites } from "../sources/agent-writes.ts";
import { describeFailure, failureLine } from "../sources/describe-failure.ts";
import { resolveKitImports } from "../sources/follow-sources.ts";
import type { FileVariable, KeySources } from "../trust/key-targets.ts";
import type { KeyTarget } from "../trust/trust.ts";
import type { KitConfig, LoadedKitConfig } from "./config-schema.ts";
import { toEngineTable } from "./engine-config.ts";
import { type Environment, parseEnvironment } from "./environment.ts";

export interface LoadConfigOptions {
  /** The project's folder; kit looks for a configuration only here, not in parent folders. */
  readonly cwd: string;
  /** `--config`: this file instead, relative to `cwd`. */
  readonly file?: string | undefined;
  /** `--env`: a file of `NAME=value` lines, relative to `cwd`; the real environment wins over it. */
  readonly envFile?: string | undefined;
  /** Whether kit reads the `.env` of the folder if no file is named. Default false. */
  readonly dotEnv?: boolean;
  /** Default `process.env`. */
  readonly environment?: Environment;
  /** Keys that the caller uses beside those of `environment`. */
  readonly keys?: Environment | undefined;
  /**
   * False for a caller that only reads: it runs a configuration in code only if the person trusts the folder. Default true.
   */
  readonly runsCode?: boolean | undefined;
  /** Whether the caller answers for the folder, such as for the output of a build. Default false. */
  readonly isTrusted?: boolean | undefined;
  /** Another text than before runs a configuration in code again, in the same process. */
  readonly version?: string | undefined;
  /** The configuration as an imported module, instead of a file of the folder. */
  readonly module?:
    | { readonly name: string; readonly load: () => Promise<{ readonly default?: unknown }> }
    | undefined;
}

export interface LoadedConfig {
  /** The file's keys, overridden by the environment. Without defaults: the readers of a key apply them. */
  readonly config: LoadedKitConfig;
  /** Absolute path of the configuration file; absent if there is none. */
  readonly file?: string;
  /** The environment with the variables of the env file. */
  readonly environment: Environment;
  /** The secrets in all `.env` files of the folder, also in those that kit did not load. */
  readonly fileSecrets?: readonly string[];
  /** The `.env` file that kit read: the number of its variables, and how many of them were already set. */
  readonly envFile?: { readonly name: string; readonly variables: number; readonly set: number };
  /** Keys of the person's environment that files of the folder would send to addresses which the person does not trust. */
  readonly untrusted?: readonly KeyTarget[];
  /** Set if the caller only reads and the person does not trust the folder: none of its code may run. */
  readonly untrustedCode?: true;
  /** The configuration in code that was not run, because of `untrustedCode`. */
  readonly skippedFile?: string;
  /** Sentences to print at the terminal. */
  readonly warnings: readonly string[];
}

const codeNames = ["kit.config.ts", "kit.config.mts", "kit.config.js", "kit.config.mjs"];
const configNames = [...codeNames, "kit.toml"];

/**
 * Loads the configuration of a project: imports `kit.config.ts`, or parses `kit.toml`.
 *
 * Throws `invalid_request` with `meta.issues` for unknown keys and wrong values (each named), for a
 * file that cannot be read, and for two configuration files in one folder.
 */
export async function loadConfig(options: LoadConfigOptions): Promise<LoadedConfig> {
  const { cwd, envFile } = options;
  // Code of the configuration may change the environment.
  const before = { ...(options.environment ?? process.env) };
  const own = { ...before, ...options.keys };
  const found = options.module === undefined ? await fileOf(options) : join(cwd, options.module.name);
  const mayRun =
    options.module !== undefined ||
    options.runsCode !== false ||
    (await import("../trust/trust.ts")).trustsCode(cwd, own);
  const isSkipped = !mayRun && found !== undefined && extname(found) !== ".toml";
  if (isSkipped && options.file !== undefined)
    throw (await import("../trust/trust.ts")).untrustedCode(options.file);
  const file = isSkipped ? undefined : found;
  const writes = new AgentWrites(realpathSync(cwd));
  const name = options.module?.name ?? (file === undefined ? "" : (options.file ?? basename(file)));
  const fromFile =
    file === undefined ? {} : await readConfig(await loadValue(file, { ...options, name, writes }), name);
  const variables = options.environment ?? process.env;
  const isThere = envFile === undefined && options.dotEnv === true && existsSync(join(cwd, ".env"));
  const envName = isThere ? ".env" : envFile;
  const inFile = envName === undefined ? {} : await readVariables(resolve(cwd, envName), envName, writes);
  // No file of a folder says whether a person trusts it.
  delete inFile.KIT_TRUST;
  const environment = { ...inFile, ...variables };
  const { config: fromEnvironment, issues, warnings } = await parseEnvironment(environment);
  if (issues.length > 0) throw refuse("The environment", issues);
  const { agent, server, engine } = fromEnvironment;
  const { engine: _, ...otherSettings } = fromFile;
  const engines = { ...toEngineTable(fromFile.engine), ...engine };
  const config = {
    ...otherSettings,
    ...fromEnvironment,
    ...(agent === undefined ? {} : { agent: { ...fromFile.agent, ...agent } }),
    ...(server === undefined ? {} : { server: { ...fromFile.server, ...server } }),
    ...(Object.keys(engines).length === 0 ? {} : { engine: engines }),
  };
  const names = Object.keys(inFile);
  const fileSecrets = secretsInFiles(cwd);
  const configName = file !== undefined && isInside(cwd, file) ? name : undefined;
  const changed =
    configName !== undefined && extname(name) !== ".toml" ? differences(before, variables, name) : [];
  const read =
    envName !== undefined && isInside(cwd, resolve(cwd, envName))
      ? differences(variables, environment, envName)
      : [];
  const answersForIt = options.isTrusted === true || options.module !== undefined;
  const sources = { config, configName, own, fromFiles: new Map([...changed, ...read]) };
  const untrusted = answersForIt ? [] : await untrustedOf(sources, cwd);
  const set = names.filter((variable) => variables[variable] !== undefined).length;
  return {
    config,
    environment,
    warnings,
    ...(untrusted.length === 0 ? {} : { untrusted }),
    ...(mayRun ? {} : { untrustedCode: true }),
    ...(isSkipped ? { skippedFile: basename(found) } : {}),
    ...(fileSecrets.length === 0 ? {} : { fileSecrets }),
    ...(envName === undefined ? {} : { envFile: { name: envName, variables: names.length, set } }),
    ...(file === undefined ? {} : { file }),
  };
}

/** The configuration that a text of `kit.toml` says. Throws `invalid_request` like `loadConfig`. */
export async function parseTomlConfig(text: string, name: string): Promise<KitConfig> {
  return await readConfig(await parseToml(text, name), name);
}

async function fileOf({ cwd, file }: LoadConfigOptions): Promise<string | undefined> {
  return file === undefined ? await findConfig(cwd) : resolve(cwd, file);
}

/** The variables that a file has added or changed. */
function differences(
  before: Environment,
  after: Environment,
  file: string,
): readonly (readonly [string, FileVariable])[] {
  return Object.entries(after).flatMap(([name, value]) =>
    value === undefined || value === before[name] ? [] : [[name, { value, file }] as const],
  );
}

/** Whether a path is that of a file of the folder, by its name or as a link. */
function isInside(folder: string, path: string): boolean {
  const root = realpathSync(folder);
  const paths = [resolve(path), existsSync(path) ? realpathSync(path) : root];
  return paths.some((each) =>
    [resolve(folder), root].some((parent) => `${each}${sep}`.startsWith(`${parent}${sep}`)),
  );
}

/** Throws if a model wrote the file: its variables choose the servers and the keys that kit uses. */
async function readVariables(
  file: string,
  name: string,
  writes: AgentWrites,
): Promise<Record<string, string | undefined>> {
  writes.check(file);
  return parseEnv(await readText(file, name));
}

/** Bytes; `.env` files are small. */
const maxVariableBytes = 256 * 1024;

/** Returns the secrets in the `.env` files of a folder, so that kit masks them in every output. */
function secretsInFiles(folder: string): readonly string[] {
  return readdirSync(folder).flatMap((name) => {
    const file = join(folder, name);
    if (!isSecretFile(name)) return [];
    const stats = statSync(file, { throwIfNoEntry: false });
    if (stats?.isFile() !== true || stats.size > maxVariableBytes) return [];
    return attempt(() => secretsInFile(parseEnv(readFileSync(file, "utf8"))), []);
  });
}

function unusable(init: Omit<KitErrorInit, "code">): KitError {
  return new KitError({ code: "invalid_request", ...init });
}

/** Without a file of the folder that could name an address, no code of trust is loaded. */
async function untrustedOf(sources: KeySources, folder: string): Promise<readonly KeyTarget[]> {
  if (sources.configName === undefined && sources.fromFiles.size === 0) return [];
  const [{ keyTargets }, { untrustedTargets }] = await Promise.all([
    import("../trust/key-targets.ts"),
    import("../trust/trust.ts"),
  ]);
  return untrustedTargets(keyTargets(sources), folder, sources.own);
}

async function findConfig(cwd: string): Promise<string | undefined> {
  const files: string[] = [];
  for (const name of configNames) {
    const stats = await stat(join(cwd, name)).catch(() => undefined);
    if (stats?.isFile()) files.push(name);
  }
  if (files.length > 1) {
    throw unusable({
      message: `There are two configurations: ${files.join(" and ")}.`,
      hint: "Remove one, or name one with --config.",
    });
  }
  return files[0] === undefined ? undefined : join(cwd, files[0]);
}

async function readConfig(value: unknown, name: string): Promise<KitConfig> {
  // Load the schema library only for a project with a configuration: it takes some milliseconds.
  const { parseConfig } = await import("./config-schema.ts");
  const { config, issues } = parseConfig(value);
  if (config === undefined) throw refuse(name, issues);
  return config;
}

function refuse(source: string, issues: readonly ErrorIssue[]): KitError {
  const sentences = issues.map(({ path, message }) => `${path} ${message}`);
  return unusable({
    message: toSentence(`${source}: ${sentences.join("; ")}`),
    meta: { issues },
  });
}

interface ConfigSource extends Pick<LoadConfigOptions, "module" | "version"> {
  readonly name: string;
  readonly writes: AgentWrites;
}

async function loadValue(file: string, source: ConfigSource): Promise<unknown> {
  const { name, writes, module } = source;
  if (module !== undefined) return await importDefault(file, source);
  writes.check(file);
  if (extname(file) === ".toml") return await parseToml(await readText(file, name), name);
  if (!codeNames.some((codeName) => extname(codeName) === extname(file))) {
    throw unusable({
      message: `${name} is not a configuration file.`,
      hint: `kit reads ${configNames.join(", ")}.`,
    });
  }
  await readText(file, name);
  return await importDefault(file, source);
}

async function readText(file: string, name: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw unusable({ message: `${name} cannot be read.`, cause: error });
  }
}

async function parseToml(text: string, name: string): Promise<unknown> {
  const { parse, TomlError } = await import("smol-toml");
  try {
    const value = parse(text.replace(/^\uFEFF/, ""));
    // A schema takes a date for a table without keys.
    const dates = dateKeys(value).map((path) => ({ path, message: "is a date, which no setting is" }));
    if (dates.length > 0) throw refuse(name, dates);
    return value;
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // The first line is the error; the other lines repeat its place.
    const [reason = "not TOML"] = error.message.replace(/^Invalid TOML document: /, "").split("\n");
    throw unusable({ message: `${name}:${error.line}:${error.column}: ${reason}.`, cause: error });
  }
}

/** The keys with a date or a time, such as `server.port`. */
function dateKeys(value: unknown, path = ""): readonly string[] {
  if (value instanceof Date) return [path];
  if (Array.isArray(value)) return value.flatMap((item, index) => dateKeys(item, `${path}[${index}]`));
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([key, item]) => dateKeys(item, path === "" ? key : `${path}.${key}`));
}

async function importDefault(
  file: string,
  { name, writes, module: written, version }: ConfigSource,
): Promise<unknown> {
  // Node evaluates a module once for each address.
  const query = version === undefined ? "" : `?kit=${encodeURIComponent(version)}`;
  const hooks =
    written === undefined ? resolveKitImports((path, imported) => writes.check(path, imported)) : undefined;
  try {
    const module: { readonly default?: unknown } =
      written === undefined ? await import(`${pathToFileURL(file).href}${query}`) : await written.load();
    if (module.default !== undefined) return await module.default;
  } catch (error) {
    throw unusable({
      message: `${name} could not be loaded.`,
      hint: failureLine(describeFailure(error, dirname(file)), basename(file)),
      cause: error,
    });
  } finally {
    hooks?.deregister();
  }
  throw unusable({
    message: `${name} has no default export.`,
    hint: "Write: export default defineConfig({ … })",
  });
}
