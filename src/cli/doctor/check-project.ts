import { existsSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import type { KitConfig } from "../../app/config/config-schema.ts";
import { type SharedEngine, sharedEngineOf, workspacesElsewhere } from "../../app/config/engine-config.ts";
import type { LoadedConfig } from "../../app/config/load-config.ts";
import { createJsonValidator } from "../../app/runtime/validate-json.ts";
import { checkCommands, checkModel, summarizeDiagnostics } from "../../app/service/findings.ts";
import { describeTarget, loginsFolder, trustHint } from "../../app/trust/trust.ts";
import { KitError } from "../../base/kit-error.ts";
import { thrownText } from "../../base/thrown.ts";
import { KitClient } from "../../client/kit-client.ts";
import { clusterStateOf } from "../../engine/cluster-state.ts";
import type { Engine } from "../../engine/contract.ts";
import { createEmbeddedEngine } from "../../engine/embedded/create-embedded-engine.ts";
import { openSharedEngine } from "../../engine/open-engine.ts";
import type { RestateOptions } from "../../engine/restate/create-restate-engine.ts";
import type { McpServerState } from "../../mcp/create-mcp-client.ts";
import { readGitState } from "../../project/scan/git/git-state.ts";
import { sourceTypes } from "../../protocol/enums.ts";
import { sourceLabel } from "../choices.ts";
import type { CommandContext } from "../command.ts";
import { count } from "../print/table.ts";
import { toKnownError } from "../report-error.ts";
import { findRunningServers, type RunningServer } from "../running-server.ts";
import { loadProjectConfig, type OpenedProject, unrunCode, withLoadedProject } from "../with-project.ts";
import { checkAdditions } from "./check-addition.ts";
import { checkAgents, checkRecordedPrompts } from "./check-agents.ts";
import { checkStore } from "./check-models.ts";
import type { Check } from "./checks.ts";
import { findIgnoredSpecs } from "./ignored-specs.ts";
import { checkSkillTools } from "./skill-tools.ts";

/** Checks the project of a command line. Problems become checks, not errors. */
export async function checkProject(context: CommandContext): Promise<readonly Check[]> {
  const { root, signal } = context;
  const checks: Check[] = [
    { name: "project", status: "ok", message: root },
    await checkRepository(root, signal),
  ];
  let loaded: LoadedConfig;
  try {
    loaded = await loadProjectConfig(context, { dotEnv: true, namesUnrunCode: true });
  } catch (error) {
    checks.push(toCheck("configuration", error, "Without --config, kit reads kit.config.ts or kit.toml."));
    return checks;
  }
  const message = loaded.file === undefined ? "none, the defaults apply" : basename(loaded.file);
  checks.push({ name: "configuration", status: "ok", message });
  checks.push(...trustChecks(loaded, root), await checkModel(loaded));
  const isTrusted = loaded.untrusted === undefined;
  // These connect to what the project names, or start it.
  if (isTrusted) checks.push(await checkStore(root, loaded));
  if (isTrusted) checks.push(...(await checkAdditions({ root, folder: root, loaded })));
  checks.push(await checkCommands(loaded.config));
  if (loaded.untrustedCode !== true) {
    if (isTrusted) checks.push(...(await checkMcpServers(context, loaded)));
    checks.push(...(await checkAgents(root, loaded)));
  }
  if (isTrusted) checks.push(...(await checkWork(root, loaded)));
  try {
    await withLoadedProject(context, { loaded, readOnly: true }, async (opened) => {
      checks.push(await checkIndex(opened, signal));
      checks.push(...(await checkSources(opened, signal)), ...checkProblems(opened));
      checks.push(...checkSkillTools(opened.project));
    });
  } catch (error) {
    signal.throwIfAborted();
    checks.push(
      toCheck("index", error, "KIT_DEBUG=1 shows more. The state in .kit is not necessarily the cause."),
    );
  }
  return checks;
}

/** The parts that the doctor leaves out because no person trusts them. */
function trustChecks(loaded: LoadedConfig, root: string): readonly Check[] {
  const { untrusted = [], untrustedCode, config } = loaded;
  const hasServers = Object.keys(config.mcp?.servers ?? {}).length > 0;
  const code = unrunCode(loaded, root) ?? (untrustedCode === true && hasServers ? "mcp.servers" : undefined);
  const warning = { name: "trust", status: "warning", hint: trustHint } as const;
  return [
    ...untrusted.map((target) => ({ ...warning, message: describeTarget(target) })),
    ...(code === undefined
      ? []
      : [{ ...warning, message: `${code} was not run: you have not trusted the code of this folder.` }]),
  ];
}

async function checkWork(root: string, loaded: LoadedConfig): Promise<readonly Check[]> {
  // Another check has reported a store that cannot be read.
  const prompts = await checkRecordedPrompts(root, loaded).catch(() => []);
  try {
    return [...prompts, ...(await checkService(root, loaded))];
  } catch (error) {
    const hint = "The folder .kit/engine holds accepted work: keep it. KIT_DEBUG=1 shows more.";
    return [...prompts, toCheck("dispatches", error, hint)];
  }
}

async function checkRepository(root: string, signal: AbortSignal): Promise<Check> {
  const name = "repository";
  const state = await readGitState(root, signal);
  if (state.kind === "none") {
    const hint = "Specs have no dates here, and 'kit specs stale' and 'impact --since' need Git.";
    return { name, status: "warning", message: state.reason, hint };
  }
  if (state.boundary.size > 0) {
    const hint = "git fetch --unshallow brings the rest; until then, old changes have no date.";
    return { name, status: "warning", message: "A shallow clone.", hint };
  }
  const message = state.head === undefined ? "Git, no commit yet" : `Git, at ${state.head.slice(0, 12)}`;
  return { name, status: "ok", message };
}

async function checkIndex({ project }: OpenedProject, signal: AbortSignal): Promise<Check> {
  const scan = await project.refresh({ signal });
  const files = count(scan.source_files, "file");
  const took = `in ${scan.duration_ms.toFixed(0)} ms`;
  const problem = project.indexProblem();
  if (problem !== undefined) {
    return {
      name: "index",
      status: "warning",
      message: `not kept in .kit: ${problem}; ${files} read ${took}`,
      hint: "Until that is fixed, every command reads all files again, and sessions of agents cannot be stored; 'kit run' works with KIT_STORE=memory.",
    };
  }
  // The latest writes may still be in the write-ahead log.
  const sizes = ["index.db", "index.db-wal"].map(
    (name) => statSync(join(project.root, ".kit", name), { throwIfNoEntry: false })?.size ?? 0,
  );
  const size = sizes.reduce((sum, bytes) => sum + bytes);
  const state = `.kit/index.db, ${(size / 1_048_576).toFixed(1)} MB; ${files} up to date ${took}`;
  return {
    name: "index",
    status: "ok",
    message: scan.rebuilt === undefined ? state : `${state}; rebuilt: ${scan.rebuilt}`,
  };
}

async function checkSources(
  { project, loaded: { config } }: OpenedProject,
  signal: AbortSignal,
): Promise<readonly Check[]> {
  const { counts_by_tool } = project.specs.features({ limit: 1 });
  const specs = Object.entries(counts_by_tool).map(
    ([tool, number]) => `${tool} ${number.toLocaleString("en")}`,
  );
  const { read, unread } = await findIgnoredSpecs(project, { config, signal });
  const ignoredSpecs = [
    ...(read.length > 0 ? [`not in Git: ${summarize(read)}`] : []),
    ...(unread.length > 0 ? [`not read, because Git ignores them: ${summarize(unread)}`] : []),
  ];
  const { counts_by_source, guidelines: listed } = project.guidelines.list({});
  const guidelines = sourceTypes.flatMap((source) => {
    const number = counts_by_source[source] ?? 0;
    return number === 0 || source === "sample"
      ? []
      : [`${sourceLabel(source)} ${number.toLocaleString("en")}`];
  });
  const ignored = new Set(
    listed.filter(({ is_ignored }) => is_ignored).map(({ source_file }) => source_file),
  );
  if (ignored.size > 0) guidelines.push(`not in Git: ${summarize([...ignored])}`);
  return [
    specs.length > 0
      ? { name: "specs", status: "ok", message: [...specs, ...ignoredSpecs].join(", ") }
      : {
          name: "specs",
          status: "warning",
          message: ["None.", ...ignoredSpecs].join(" "),
          hint: "'kit specs list' says where kit looks for them.",
        },
    guidelines.length > 0
      ? { name: "guidelines", status: "ok", message: guidelines.join(", ") }
      : {
          name: "guidelines",
          status: "warning",
          message: "Only samples.",
          hint: "Write a CLAUDE.md, an AGENTS.md, .cursor/rules/*.mdc or .kiro/steering/*.md.",
        },
  ];
}

/** The first names, and the number of the others. */
function summarize(names: readonly string[]): string {
  const others = names.length - 3;
  return `${names.slice(0, 3).join(", ")}${others > 0 ? ` and ${count(others, "other")}` : ""}`;
}

function checkProblems({ project }: OpenedProject): readonly Check[] {
  return [
    summarizeDiagnostics("spec problems", project.specs.diagnostics(), "kit specs validate"),
    summarizeDiagnostics(
      "guideline problems",
      [...project.guidelines.diagnostics(), ...project.guidelines.lint()],
      "kit guidelines lint",
    ),
  ];
}

function toCheck(name: string, error: unknown, otherwise: string): Check {
  const { message, hint } = toKnownError(error);
  return { name, status: "error", message, hint: error instanceof KitError && hint ? hint : otherwise };
}

/** The most dead letters to count. */
const mostCounted = 1_000;

/** Checks the project's server and its accepted work; no check for a project that never accepted work. */
async function checkService(root: string, { config, environment }: LoadedConfig): Promise<readonly Check[]> {
  const [first, ...otherServers] = await findRunningServers(root);
  const checks: Check[] = [];
  if (first !== undefined) {
    const waitingText =
      otherServers.length === 0 ? "" : `; ${count(otherServers.length, "other")} waiting to take over`;
    checks.push(await checkServer(first, waitingText));
  }
  const shared = sharedEngineOf(config, environment);
  if (shared !== undefined)
    return [...checks, ...(await checkSharedEngine(shared)), ...checkWorkspaces(config)];
  const folder = resolve(root, config.engine?.folder ?? join(".kit", "engine"));
  // Opening a store that does not exist would create it.
  if (existsSync(join(folder, "engine.db")))
    checks.push(await checkDeadLetters(createEmbeddedEngine({ folder })));
  return checks;
}

/** How long a server may take to report its health, in ms. */
const healthMs = 2_000;

async function checkServer({ url, pid }: RunningServer, waitingText: string): Promise<Check> {
  const name = "server";
  const message = `${url} (process ${pid})${waitingText}`;
  try {
    await new KitClient({ baseUrl: url, retry: { attempts: 1 }, timeoutMs: healthMs }).health();
    return { name, status: "ok", message };
  } catch (error) {
    const reason = thrownText(error);
    const hint = "Until then it refuses new work, and accepted work may be lost.";
    return { name, status: "error", message: `${message}: ${reason}`, hint };
  }
}

/** Connects to the shared database, which creates its missing tables. */
async function checkSharedEngine(shared: SharedEngine): Promise<readonly Check[]> {
  try {
    const engine = await openSharedEngine(shared);
    const name = new URL(shared.url);
    const message = `Postgres at ${name.hostname}, schema ${shared.schema ?? "kit"}`;
    const hint = "Only the machine that owns an instance answers prompts without an idempotency key.";
    return [
      { name: "engine", status: "ok", message, hint },
      ...(await checkNodes(engine)),
      ...(shared.restate === undefined ? [] : [await checkRestate(shared, shared.restate)]),
      await checkDeadLetters(engine),
    ];
  } catch (error) {
    const hint = error instanceof KitError ? error.hint : undefined;
    const message = thrownText(error);
    return [{ name: "engine", status: "error", message, hint }];
  }
}

/** Checks the running nodes. */
async function checkNodes(engine: Engine): Promise<readonly Check[]> {
  const { nodes, problems } = await clusterStateOf(engine).catch(() => ({ nodes: [], problems: [] }));
  if (nodes.length === 0) return [];
  return problems.map(({ message, hint }) => ({ name: "nodes", status: "warning", message, hint }));
}

/** Asks Restate's admin API whether kit's object is registered. */
async function checkRestate(
  { schema }: SharedEngine,
  { admin, token, service = schema ?? "kit" }: RestateOptions,
): Promise<Check> {
  const name = "restate";
  const bases = typeof admin === "string" ? [admin] : (admin ?? []);
  const addresses = bases.length === 0 ? ["http://127.0.0.1:9070"] : bases;
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  for (const base of addresses) {
    try {
      const url = new URL(`services/${encodeURIComponent(service)}`, `${base}/`);
      const { ok, status } = await fetch(url, { headers, signal: AbortSignal.timeout(healthMs) });
      const message = `Restate at ${url.host}`;
      if (ok) return { name, status: "ok", message: `${message} knows the object ${service}` };
      if (status === 404)
        return {
          name,
          status: "warning",
          message: `${message} does not know the object ${service}`,
          hint: "kit start registers it. If a node runs, its log says why Restate does not accept it.",
        };
      const hint = "Check engine.restate.admin (KIT_RESTATE_ADMIN) and KIT_RESTATE_TOKEN.";
      return { name, status: "warning", message: `${message} answers ${status}`, hint };
    } catch {
      // The next server may answer.
    }
  }
  return {
    name,
    status: "warning",
    message: `Restate does not answer at ${addresses.join(", ")}`,
    hint: "Work is accepted, and waits until Restate answers. Check engine.restate.admin (KIT_RESTATE_ADMIN).",
  };
}

function checkWorkspaces(config: KitConfig): readonly Check[] {
  const message = workspacesElsewhere(config);
  return message === undefined ? [] : [{ name: "workspaces", status: "warning", message }];
}

async function checkDeadLetters(engine: Engine): Promise<Check> {
  try {
    const { items } = await engine.listDeadLetters({ limit: mostCounted });
    if (items.length === 0) return { name: "dispatches", status: "ok", message: "no dispatch has failed" };
    const number = `${items.length.toLocaleString("en")}${items.length === mostCounted ? " or more" : ""}`;
    return {
      name: "dispatches",
      status: "warning",
      message: `${number} failed`,
      hint: "'kit dispatches list --status failed' lists them, 'kit dispatches retry' tries one again.",
    };
  } finally {
    await engine.drain();
  }
}

/** Starts every configured MCP server once, to see whether it answers and what it offers. */
async function checkMcpServers(
  { root, signal }: CommandContext,
  { config, environment }: LoadedConfig,
): Promise<readonly Check[]> {
  if (Object.keys(config.mcp?.servers ?? {}).length === 0) return [];
  const { createMcpClient } = await import("../../mcp/create-mcp-client.ts");
  const client = createMcpClient({
    config: config.mcp ?? {},
    root,
    env: environment,
    logins: loginsFolder(root, process.env),
    validateJson: createJsonValidator({ isLenient: true }),
  });
  try {
    return (await client.inspect(signal)).map(serverCheck);
  } finally {
    await client.close();
  }
}

function serverCheck({ server, tools, isAvailable, problems }: McpServerState): Check {
  const name = `MCP server ${server}`;
  const [first] = problems;
  if (first === undefined) return { name, status: "ok", message: count(tools.length, "tool") };
  if (!isAvailable) {
    const remark = `mcp.servers.${server} in the configuration says how it is started.`;
    const hint = first.details === undefined ? remark : `Its last output: ${first.details}`;
    return { name, status: "error", message: first.message, hint };
  }
  const hint = problems.map((problem) => problem.message).join(" ");
  return { name, status: "warning", message: count(tools.length, "tool"), hint };
}
