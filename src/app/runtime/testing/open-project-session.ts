import { onTestFinished } from "vitest";
import type { AgentProfile } from "../../../agents/define/agent-profile.ts";
import type { Session } from "../../../agents/session/session.ts";
import { openProject } from "../../../project/open-project.ts";
import type { KitEvent } from "../../../protocol/event.ts";
import { local } from "../../../sandboxes/local/local-sandbox.ts";
import { InMemorySessionStore } from "../../../stores/memory/memory-store.ts";
import type { ProviderAnswer } from "../../../testing/provider-server/protocols.ts";
import type { ProviderServer } from "../../../testing/provider-server/provider-server.ts";
import { createTemporaryRepository } from "../../../testing/temporary-repository.ts";
import { openProjectService } from "../../service/open-project-service.ts";

interface ProjectSessionOptions {
  readonly files: Readonly<Record<string, string>>;
  readonly server: ProviderServer;
  readonly defaults: AgentProfile;
  readonly environment?: Readonly<Record<string, string>>;
}

/**
 * Opens a session of an agent that works in a new repository with these files, in memory. `start` opens the session again
 * in a new application, as another process would. The end of the test closes all of it.
 */
export async function openProjectSession({
  files,
  server,
  defaults,
  environment = {},
}: ProjectSessionOptions) {
  const repository = await createTemporaryRepository(files);
  const { root } = repository;
  const store = new InMemorySessionStore();
  const events: KitEvent[] = [];
  const opened: { close(): Promise<void> }[] = [];
  const start = async (): Promise<Session> => {
    const project = await openProject({ root, indexFile: ":memory:" });
    const { app } = await openProjectService({
      project,
      loaded: { config: { providers: server.providers }, environment },
      engine: "memory",
      defaults,
      sandbox: local({ root }),
      store,
    });
    app.onEvent((event) => events.push(event));
    opened.push(app, project);
    return (await app.instance("default", "1")).session();
  };
  onTestFinished(async () => {
    for (const each of opened) await each.close();
    await repository[Symbol.asyncDispose]();
  });
  return { root, events, store, start, session: await start() };
}

/** An answer of the model that is a text. */
export const answerText = (text: string): ProviderAnswer => ({ text });

let calls = 0;

/** An answer of the model that calls a tool; each call has its own id. */
export function answerCall(name: string, args: object): ProviderAnswer {
  calls += 1;
  return { toolCall: { id: `call_${calls}`, name, args: JSON.stringify(args) } };
}
