import type { Engine } from "../../engine/contract.ts";
import { createEmbeddedEngine } from "../../engine/embedded/create-embedded-engine.ts";
import type { HostedApp } from "../runtime/hosted-app.ts";
import { createService } from "./create-service.ts";

/**
 * Opens a service for an application that belongs to none: its work ends with the process. The engine is in memory
 * unless the caller gives another one.
 */
export async function openOwnService(
  app: HostedApp,
  given: Engine = createEmbeddedEngine(),
): Promise<{ finish(): Promise<void> }> {
  const { engine, drain } = await createService({
    app,
    engine: given,
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
