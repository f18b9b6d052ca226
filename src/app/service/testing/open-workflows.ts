import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { KitEvent } from "../../../protocol/event.ts";
import { runStream } from "../../../protocol/session-name.ts";
import { SqliteSessionStore } from "../../../stores/sqlite/sqlite-store.ts";
import { createScriptedModel, type Script } from "../../../testing/scripted-model.ts";
import { createTemporaryRepository } from "../../../testing/temporary-repository.ts";
import { openTestService, type TestService, type TestServiceOptions } from "../../../testing/test-service.ts";

// As `createAgent` of kit makes it.
const writer = `export default { kind: "kit.agent", describe: async () => ({ instructions: "Write." }) };\n`;

export interface Opened {
  readonly service: TestService;
  readonly root: string;
  /** Ends the process, so to speak: the same project is opened again on what its engine has kept. */
  restart(script?: Script): Promise<TestService>;
}

/** A project of workflows, and an agent `writer`, served on files that last. */
export async function openWorkflows(
  files: Readonly<Record<string, string>>,
  script: Script = () => ({ text: "Done." }),
  options: Pick<TestServiceOptions, "env"> = {},
): Promise<Opened> {
  const repository = await createTemporaryRepository({ "src/agents/writer.ts": writer, ...files });
  const { root } = repository;
  const opened: TestService[] = [];
  const start = async (model: Script): Promise<TestService> => {
    const service = await openTestService({
      root,
      model: createScriptedModel(model),
      store: new SqliteSessionStore({ file: join(root, "sessions.db") }),
      engineFolder: join(root, "engine"),
      ...options,
    });
    opened.push(service);
    return service;
  };
  onTestFinished(async () => {
    await opened.at(-1)?.close();
    await repository[Symbol.asyncDispose]();
  });
  return {
    service: await start(script),
    root,
    async restart(next = script) {
      await opened.at(-1)?.close();
      return await start(next);
    },
  };
}

export async function eventsOf(service: TestService, runId: string): Promise<readonly KitEvent[]> {
  return await service.engine.events.read(runStream(runId), { limit: 1_000 });
}

/** Resolves once the run has come to its `waitFor`. */
export async function waiting(service: TestService, runId: string): Promise<void> {
  const stop = new AbortController();
  for await (const event of service.engine.events.subscribe(runStream(runId), { signal: stop.signal })) {
    if (event.type === "log" && event.message === "waiting") return stop.abort();
  }
}
