import { createEmbeddedEngine } from "../../engine/embedded/create-embedded-engine.ts";
import type { HostedApp } from "../agents/hosted-app.ts";
import { createService } from "./create-service.ts";

/** Opens a service in memory for an application that belongs to none: its work ends with the process. */
export async function openOwnService(app: HostedApp): Promise<{ finish(): Promise<void> }> {
  const { engine, drain } = await createService({
    app,
    engine: createEmbeddedEngine(),
    // Somebody runs one workflow: the others are not due because of that.
    schedules: false,
  });
  return {
    async finish() {
      for (const status of ["queued", "running"] as const) {
        for (;;) {
          const { items } = await engine.listDispatches({ status });
          if (items.length === 0) break;
          await Promise.all(items.map(({ dispatch_id }) => engine.awaitDispatch(dispatch_id)));
        }
      }
      await drain({ timeoutMs: 0 });
    },
  };
}
