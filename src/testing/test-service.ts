import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Service } from "../app/service/service.ts";
import type { Clock } from "../base/clock.ts";
import type { EngineLimits } from "../engine/shared/engine-base.ts";
import type { WaitAnswers } from "./answer-waits.ts";
import { openTestParts, type TestAppOptions } from "./test-app.ts";

export interface TestServiceOptions extends Omit<TestAppOptions, keyof WaitAnswers> {
  /** The engine's clock, for sleeps and schedules; default: the system's. Only the test advances it. */
  readonly clock?: Clock;
  /** Where the engine keeps accepted work; default: in memory. */
  readonly engineFolder?: string;
}

export interface TestService extends Service {
  /** Lets work finish for at most `timeoutMs` (default 0), then closes the engine and the project. */
  close(options?: { readonly timeoutMs?: number }): Promise<void>;
}

/**
 * Opens a project like `kit start`, without HTTP: prompts, dispatches and workflows go through a
 * durable engine, and the test's model answers. Close the service at the end of the test.
 *
 * @example
 * ```ts
 * import { createScriptedModel, openTestService } from "kit/testing";
 *
 * const service = await openTestService({ root: ".", model: createScriptedModel([{ text: "Done." }]) });
 * const target = { agent: "reviewer", instance_id: "pr-7", session: "default" };
 * console.log((await service.prompt(target, { message: "Review it." })).text); // Done.
 * await service.close();
 * ```
 */
export async function openTestService(options: TestServiceOptions): Promise<TestService> {
  return await createTestService(options);
}

/** `openTestService` with other limits; `onError` receives what a server would log. */
export async function createTestService(
  options: TestServiceOptions,
  { restMs, ...limits }: Partial<EngineLimits> & { readonly restMs?: number } = {},
  onError: (error: unknown) => void = () => undefined,
): Promise<TestService> {
  const [{ createService }, { createEmbeddedEngine }, { createApprovals }] = await Promise.all([
    import("../app/service/create-service.ts"),
    import("../engine/embedded/create-embedded-engine.ts"),
    import("../agents/approvals/approvals.ts"),
  ]);
  const { engineFolder, clock, ...project } = options;
  const parts = await openTestParts(project);
  const engine = createEmbeddedEngine({ limits, clock, folder: engineFolder });
  try {
    const given = { ...parts, approvals: createApprovals(), onListenerError: onError };
    const file = join(parts.root, "kit.toml");
    const configFile = existsSync(file) ? file : undefined;
    const service = await createService(given, { engine, onError, restMs, configFile });
    return { ...service, close: ({ timeoutMs = 0 } = {}) => service.close({ timeoutMs }) };
  } catch (error) {
    await engine.drain({ timeoutMs: 0 });
    await parts.close();
    throw error;
  }
}
