import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { AgentProfile } from "../agents/define/agent-profile.ts";
import type { RuntimeParts } from "../app/runtime/agent-factory.ts";
import type { App } from "../app/service/app.ts";
import { KitError } from "../base/kit-error.ts";
import type { McpClient } from "../mcp/create-mcp-client.ts";
import type { McpConfig } from "../mcp/servers/mcp-config.ts";
import type { ProviderConfigs } from "../models/provider-config.ts";
import type { Recording } from "../models/recording/read-recording.ts";
import type { PythonRunner } from "../python/contract.ts";
import type { SandboxFactory } from "../sandboxes/contract.ts";
import type { SessionStore } from "../stores/contract.ts";
import { answerWaits, type WaitAnswers } from "./answer-waits.ts";

export interface TestAppOptions extends WaitAnswers {
  /** The project. Its agents, workflows, skills, roles, specs and guidelines are used as they are. */
  readonly root: string;
  /** Answers for every model string. Pass either this or `recording`. */
  readonly model?: LanguageModelV4;
  /** Answers in place of providers: a file that `KIT_RECORD` wrote, or `readRecording(file)` of it. */
  readonly recording?: string | Recording;
  /** The variables that agents and workflows find in `env`; default: none. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The store, which the test closes. Default: in memory. */
  readonly store?: SessionStore;
  /** Default: an empty workspace per session, removed when the app is closed. */
  readonly sandbox?: SandboxFactory;
  /** Runs Python for agents whose files ask for it, if its package is installed; default false. */
  readonly python?: boolean;
  /** Starts the MCP servers of the project's configuration when an agent works; default false. */
  readonly mcp?: boolean;
  /** Default fields of every agent's profile, which override the `agent` table of the configuration. */
  readonly defaults?: AgentProfile;
}

/**
 * Opens a project like kit, with the test's model and with histories in memory, without a network and
 * without a key. `signals` answers the waits of workflows, and `clock` ends their sleeps. A run that would wait
 * for ever is cancelled, and `run` rejects with `conflict`. Close the app at the end of the test.
 *
 * @example
 * import { createScriptedModel, openTestApp } from "kit/testing";
 *
 * const model = createScriptedModel([{ text: "Released." }]);
 * const app = await openTestApp({ root: ".", model, signals: { approval: { approved: true } } });
 * const { result } = await app.run("release");
 *
 * @example
 * import { openTestApp } from "kit/testing";
 *
 * // KIT_RECORD=tests/release.jsonl kit run release
 * const app = await openTestApp({ root: ".", recording: "tests/release.jsonl" });
 */
export async function openTestApp({ signals, clock, ...options }: TestAppOptions): Promise<App> {
  const [parts, { createEmbeddedEngine }, { createService }, { finishDispatches }] = await Promise.all([
    openTestParts(options),
    import("../engine/embedded/create-embedded-engine.ts"),
    import("../app/service/create-service.ts"),
    import("../app/service/instance-calls.ts"),
  ]);
  const engine = createEmbeddedEngine(clock === undefined ? {} : { clock });
  const { app } = await createService(parts, { engine, housekeeping: false }).catch(
    async (error: unknown) => {
      await parts.close();
      throw error;
    },
  );
  const waits = answerWaits(engine, { signals, clock });
  return {
    ...app,
    run: (async (...call: Parameters<App["run"]>) =>
      await Promise.race([app.run(...call), waits.stuck])) as App["run"],
    async close() {
      using _ = waits;
      await finishDispatches(engine);
      await app.close();
    },
  };
}

/** Opens the parts of a test's service: the project's own configuration and files, with the test's model. */
export async function openTestParts(options: Omit<TestAppOptions, keyof WaitAnswers>): Promise<RuntimeParts> {
  const [
    { mergeProfiles },
    { createProjectContext },
    { openProject },
    { loadConfig },
    { toProfile },
    { InMemorySessionStore },
    { virtual },
    { createSecretMask },
    { knownSecrets },
  ] = await Promise.all([
    import("../agents/define/create-agent.ts"),
    import("../app/runtime/repositories.ts"),
    import("../project/open-project.ts"),
    import("../app/config/load-config.ts"),
    import("../app/config/agent-config.ts"),
    import("../stores/memory/memory-store.ts"),
    import("../sandboxes/virtual/virtual-sandbox.ts"),
    import("../agents/secrets.ts"),
    import("../app/runtime/known-secrets.ts"),
  ]);
  const { config } = await loadConfig({ cwd: options.root, environment: {} });
  const models = await modelsOf(options, config.providers);
  const project = await openProject({ root: options.root, config });
  const closing = new AsyncDisposableStack();
  closing.defer(() => project.close());
  const folder = mkdtempSync(join(tmpdir(), "kit-test-app-"));
  closing.defer(() => rmSync(folder, { recursive: true, force: true }));
  const store = options.store ?? new InMemorySessionStore();
  if (store !== options.store) closing.defer(() => store.close());
  const context = createProjectContext(project);
  closing.defer(() => context.close());
  const { mcp, python } = await openOthers(project.root, config.mcp, options);
  closing.defer(() => python?.close());
  closing.defer(() => mcp?.close());
  return {
    root: project.root,
    store,
    sandbox: options.sandbox ?? virtual({ folder }),
    ...models,
    env: options.env ?? {},
    keepsWrites: false,
    mask: createSecretMask(knownSecrets(options.env ?? {}, config)),
    retry: { attempts: 2, baseDelayMs: 1, maxDelayMs: 5 },
    project: context,
    mcp,
    python,
    defaults: mergeProfiles(toProfile(config.agent, config.compaction), options.defaults ?? {}),
    close: () => closing.disposeAsync(),
  };
}

/** Returns the models of a test: one for all names, or those of a recording. */
async function modelsOf(
  { model, recording }: Pick<TestAppOptions, "model" | "recording">,
  providers: ProviderConfigs | undefined,
): Promise<Pick<RuntimeParts, "resolveModel" | "defaultModel">> {
  if (model !== undefined) {
    return {
      resolveModel: async (name) => ({ name, model, structuredOutput: "never" }),
      defaultModel: "test/model",
    };
  }
  if (recording === undefined) {
    throw new KitError({
      code: "invalid_request",
      message: "The test app has no model.",
      hint: "Give it `model: createScriptedModel([…])`, or the `recording` of a run with KIT_RECORD.",
    });
  }
  const [{ readRecording }, { createModelResolver }, { knownProviders }] = await Promise.all([
    import("../models/recording/read-recording.ts"),
    import("../models/create-model-resolver.ts"),
    import("../models/provider-config.ts"),
  ]);
  const { fetchFor, models } = typeof recording === "string" ? readRecording(recording) : recording;
  const keys = Object.values(knownProviders).flatMap(({ keys: [name] }) =>
    name === undefined ? [] : [name],
  );
  return {
    resolveModel: createModelResolver({
      fetchFor,
      // No request leaves the process, but providers require a key.
      env: Object.fromEntries(keys.map((name) => [name, "recorded"])),
      providers,
    }),
    defaultModel: models[0] ?? "offline/guide",
  };
}

/** Opens the parts that run in separate processes, if the test asks for them. */
async function openOthers(
  root: string,
  config: McpConfig | undefined,
  { env = {}, mcp, python }: TestAppOptions,
): Promise<{ readonly mcp?: McpClient; readonly python?: PythonRunner }> {
  const parts: { mcp?: McpClient; python?: PythonRunner } = {};
  if (python === true) {
    const { createPython } = await import("../python/create-python.ts");
    parts.python = createPython();
  }
  if (mcp === true) {
    const [{ createMcpClient }, { createJsonValidator }] = await Promise.all([
      import("../mcp/create-mcp-client.ts"),
      import("../app/runtime/validate-json.ts"),
    ]);
    parts.mcp = createMcpClient({
      config: config ?? {},
      root,
      // PATH is not a secret, and a server needs it to find programs.
      env: { PATH: process.env.PATH, ...env },
      canAsk: true,
      validateJson: createJsonValidator({ isLenient: true }),
    });
  }
  return parts;
}
