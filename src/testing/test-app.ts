import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { AgentProfile } from "../agents/agent-profile.ts";
import type { App } from "../app/agents/app.ts";
import type { AppOptions } from "../app/agents/create-app.ts";
import type { HostedApp } from "../app/agents/hosted-app.ts";
import type { McpClient } from "../mcp/client/create-mcp-client.ts";
import type { McpConfig } from "../mcp/client/mcp-config.ts";
import type { PythonRunner } from "../python/contract.ts";
import type { SandboxFactory } from "../sandboxes/contract.ts";
import type { SessionStore } from "../stores/contract.ts";
import { lendStore } from "../stores/lend-store.ts";
import { answerWaits, type WaitAnswers } from "./answer-waits.ts";

export interface TestAppOptions extends WaitAnswers {
  /** The project: its agents, workflows, skills, roles, specs and guidelines are the real ones. */
  readonly root: string;
  /** Answers for every model string, whatever an agent asks for. */
  readonly model: LanguageModelV4;
  /** What agents and workflows find in `env`; default: nothing. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The test's own to close. Default: in memory. */
  readonly store?: SessionStore;
  /** Default: an empty workspace per session, removed when the app is closed. */
  readonly sandbox?: SandboxFactory;
  /** Python for agents whose files ask for it; default false. Its package must be there. */
  readonly python?: boolean;
  /** Starts the MCP servers of the project's configuration when an agent works; default false. */
  readonly mcp?: boolean;
  /** Laid under every agent's own profile, over the `agent` table of the configuration. */
  readonly defaults?: AgentProfile;
}

/**
 * Opens a project as kit runs it, with a model of the test's own and histories in memory: no network,
 * no key. Workflows that wait have their signals from `signals` and their time from `clock`; a run that would wait
 * without them is cancelled, and `run` rejects with `conflict`. Close it at the end of the test.
 *
 * @example
 * const app = await openTestApp({ root: ".", model, signals: { approval: { approved: true } } });
 * const { result } = await app.run("release");
 */
export async function openTestApp({ signals, clock, ...options }: TestAppOptions): Promise<App> {
  const [app, { createEmbeddedEngine }, { openOwnService }] = await Promise.all([
    createTestApp(options),
    import("../engine/embedded/create-embedded-engine.ts"),
    import("../app/service/open-own-service.ts"),
  ]);
  const engine = createEmbeddedEngine(clock === undefined ? {} : { clock });
  const service = await openOwnService(app, engine);
  const waits = answerWaits(engine, {
    ...(signals === undefined ? {} : { signals }),
    ...(clock === undefined ? {} : { clock }),
  });
  return {
    ...app,
    run: (name, run) => Promise.race([app.run(name, run), waits.stuck]),
    async close() {
      using _ = waits;
      await service.finish();
      await app.close();
    },
  };
}

/** The same, as a service sees it. */
export async function createTestApp(
  options: Omit<TestAppOptions, keyof WaitAnswers>,
  more: Pick<AppOptions, "approvals" | "instances"> = {},
): Promise<HostedApp> {
  const [
    { mergeProfiles },
    { createApp },
    { createProjectContext },
    { openProject },
    { loadConfig },
    { toProfile },
    stores,
    { virtual },
    { createSecretMask },
    { knownSecrets },
  ] = await Promise.all([
    import("../agents/agent-profile.ts"),
    import("../app/agents/create-app.ts"),
    import("../app/agents/project-context.ts"),
    import("../project/open-project.ts"),
    import("../app/config/load-config.ts"),
    import("../app/config/agent-config.ts"),
    import("../stores/memory/memory-store.ts"),
    import("../sandboxes/virtual/virtual-sandbox.ts"),
    import("../agents/secrets.ts"),
    import("../app/agents/known-secrets.ts"),
  ]);
  const { config } = await loadConfig({ cwd: options.root, environment: {} });
  const project = await openProject({ root: options.root, config });
  const folder = mkdtempSync(join(tmpdir(), "kit-test-app-"));
  const clean = async (): Promise<void> => {
    await project.close();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const app = await createApp({
      root: project.root,
      store: options.store === undefined ? new stores.InMemorySessionStore() : lendStore(options.store),
      sandbox: options.sandbox ?? virtual({ folder }),
      resolveModel: async (name) => ({ name, model: options.model, structuredOutput: "never" }),
      defaultModel: "test/model",
      env: options.env ?? {},
      keepsWrites: false,
      mask: createSecretMask(knownSecrets(options.env ?? {}, config)),
      retry: { attempts: 2, baseDelayMs: 1, maxDelayMs: 5 },
      project: createProjectContext(project),
      ...(await strangers(project.root, config.mcp, options)),
      ...more,
      defaults: mergeProfiles(toProfile(config.agent, config.compaction), options.defaults ?? {}),
    });
    const close = async (): Promise<void> => {
      await app.close();
      await clean();
    };
    return { ...app, close };
  } catch (error) {
    await clean();
    throw error;
  }
}

/** What runs in processes of its own, as far as the test asks for it. */
async function strangers(
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
      import("../mcp/client/create-mcp-client.ts"),
      import("../app/agents/validate-json.ts"),
    ]);
    parts.mcp = createMcpClient({
      config: config ?? {},
      root,
      // Where programs are found is no secret, and a server is one.
      env: { PATH: process.env.PATH, ...env },
      validateJson: createJsonValidator({ isLenient: true }),
    });
  }
  return parts;
}
