import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { AgentProfile } from "../agents/agent-profile.ts";
import type { App } from "../app/agents/app.ts";
import type { SandboxFactory } from "../sandboxes/contract.ts";
import type { SessionStore } from "../stores/contract.ts";

export interface TestAppOptions {
  /** The project: its agents, workflows, skills, roles, specs and guidelines are the real ones. */
  readonly root: string;
  /** Answers for every model string, whatever an agent asks for. */
  readonly model: LanguageModelV4;
  /** What agents and workflows find in `env`; default: nothing. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Default: in memory. */
  readonly store?: SessionStore;
  /** Default: an empty workspace per session, removed when the app is closed. */
  readonly sandbox?: SandboxFactory;
  /** Laid under every agent's own profile. */
  readonly defaults?: AgentProfile;
}

/**
 * Opens a project as kit runs it, with a model of the test's own and histories in memory: no network,
 * no key. Close it at the end of the test.
 */
export async function openTestApp(options: TestAppOptions): Promise<App> {
  const [{ createApp }, { createProjectContext }, { openProject }, { loadConfig }, stores, { virtual }] =
    await Promise.all([
      import("../app/agents/create-app.ts"),
      import("../app/agents/project-context.ts"),
      import("../project/open-project.ts"),
      import("../app/config/load-config.ts"),
      import("../stores/memory/memory-store.ts"),
      import("../sandboxes/virtual/virtual-sandbox.ts"),
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
      store: options.store ?? new stores.InMemorySessionStore(),
      sandbox: options.sandbox ?? virtual({ folder }),
      resolveModel: async (name) => ({ name, model: options.model, structuredOutput: "never" }),
      defaultModel: "test/model",
      env: options.env ?? {},
      retry: { attempts: 2, baseDelayMs: 1, maxDelayMs: 5 },
      project: createProjectContext(project),
      ...(options.defaults === undefined ? {} : { defaults: options.defaults }),
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
