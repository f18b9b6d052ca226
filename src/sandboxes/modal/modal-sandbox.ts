import type { SandboxFactory } from "../contract.ts";
import type { RemoteDriver } from "../remote/driver.ts";
import { createRemoteFactory } from "../remote/remote-factory.ts";
import type { ModalOptions } from "./modal-sdk.ts";

/**
 * A machine of Modal for every session: started by the first tool that needs it, and removed with the session. Modal
 * cannot pause machines: a machine ends, and loses its files, two minutes after `idleMs` without a call, and at the
 * latest a day after its start. Needs the package `modal` 0.11.1, and `MODAL_TOKEN_ID` with `MODAL_TOKEN_SECRET`.
 *
 * @example
 * import { createAgent } from "kit";
 * import { modal } from "kit/sandboxes/modal";
 *
 * export default createAgent({ sandbox: modal({ image: "node:24", upload: true, idleMs: 3_600_000 }), allowShell: true })
 */
export function modal(options: ModalOptions = {}): SandboxFactory {
  // A driver keeps connections, its app and its image, so all sessions of a project share one.
  const drivers = new Map<string, RemoteDriver>();
  return createRemoteFactory("modal", options, async (root) => {
    const { createModalDriver } = await import("./modal-driver.ts");
    const driver = drivers.get(root) ?? createModalDriver(options, root);
    drivers.set(root, driver);
    return driver;
  });
}
