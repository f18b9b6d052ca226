import { KitError } from "../../base/kit-error.ts";
import type { HostedApp, HostService } from "./hosted-app.ts";

/** The service that an application belongs to: one that was opened for it, else one of its own in memory. */
export interface HostLink {
  set(service: HostService): void;
  current(): HostService | undefined;
  /** For work that its caller waits for. */
  get(): Promise<HostService>;
  /** For work that is to be done whatever happens. Throws `unavailable` where it would be gone with the process. */
  lasting(): HostService;
  /** Ends the application's own service: what was accepted is done first. */
  close(): Promise<void>;
}

export function createHostLink(app: () => HostedApp): HostLink {
  let hosting: HostService | undefined;
  let own: Promise<{ finish(): Promise<void> }> | undefined;
  const current = (): HostService | undefined => hosting;
  return {
    set(service) {
      hosting = service;
    },
    current,
    async get() {
      if (current() === undefined) {
        own ??= import("../service/open-own-service.ts").then(({ openOwnService }) => openOwnService(app()));
        await own;
      }
      // Opening a service hosts the application.
      const service = current();
      if (service === undefined) throw new Error("A service was opened that hosts nothing.");
      return service;
    },
    lasting() {
      if (hosting !== undefined && own === undefined) return hosting;
      throw new KitError({
        code: "unavailable",
        message:
          "This application keeps nothing on disk: what is dispatched here would be gone with the process.",
        hint: "Open the project with openService, or have kit start serve it; or prompt the agent and wait.",
      });
    },
    async close() {
      const service = await own?.catch(() => undefined);
      await service?.finish();
    },
  };
}
