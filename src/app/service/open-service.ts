import { lendStore } from "../../stores/lend-store.ts";
import type { OpenAgentsOptions } from "./open-agents.ts";
import type { ProjectService } from "./open-project-service.ts";

/**
 * Opens the agents and workflows of a repository behind its durable engine, under its configuration, as
 * `kit start` does without the HTTP: what it accepts outlives the process, and what a process before it left
 * is gone on with. Close it when it is no longer needed.
 */
export async function openService(options: OpenAgentsOptions = {}): Promise<ProjectService> {
  // As cheap to import as `openAgents`.
  const [{ openProject }, { loadConfig }, { openProjectService }] = await Promise.all([
    import("../../project/open-project.ts"),
    import("../config/load-config.ts"),
    import("./open-project-service.ts"),
  ]);
  const { root = process.cwd(), env, store, onEvent, onListenerError, ...rest } = options;
  const { config, environment, fileSecrets = [] } = await loadConfig({ cwd: root });
  const project = await openProject({ root, config });
  try {
    const service = await openProjectService({
      ...rest,
      project,
      loaded: {
        config: store === undefined ? config : { ...config, store: lendStore(store) },
        environment: env ?? environment,
        fileSecrets,
      },
      ...(onEvent === undefined ? {} : { observers: [onEvent] }),
      ...(onListenerError === undefined ? {} : { onError: onListenerError }),
    });
    return {
      ...service,
      async close(how) {
        await service.close(how);
        await project.close();
      },
    };
  } catch (error) {
    await project.close();
    throw error;
  }
}
