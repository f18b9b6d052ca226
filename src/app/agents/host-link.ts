import type { HostedApp, HostService } from "./hosted-app.ts";

/** The service that an application belongs to: one that was opened for it, else one of its own in memory. */
export interface HostLink {
  set(service: HostService): void;
  current(): HostService | undefined;
  get(): Promise<HostService>;
  /** Ends the application's own service: what was accepted is done first. */
  close(): Promise<void>;
}

export function createHostLink(app: () => HostedApp): HostLink {
  let current: HostService | undefined;
  let own: Promise<{ finish(): Promise<void> }> | undefined;
  return {
    set(service) {
      current = service;
    },
    current: () => current,
    async get() {
      if (current === undefined) {
        own ??= import("../service/open-own-service.ts").then(({ openOwnService }) => openOwnService(app()));
        await own;
      }
      // Opening a service hosts the application.
      return current as unknown as HostService;
    },
    async close() {
      const service = await own?.catch(() => undefined);
      await service?.finish();
    },
  };
}
