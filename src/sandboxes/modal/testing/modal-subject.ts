import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { RemoteSubject } from "../../remote/testing/remote.suite.ts";
import { modal } from "../modal-sandbox.ts";
import { startFakeModal } from "./fake-modal.ts";

const packages = fileURLToPath(new URL("../../../../vendors/node_modules", import.meta.url));

/** Whether the vendor's package is installed; `npm run test:vendors` installs it. */
export const hasModal: boolean = existsSync(`${packages}/modal`);

/** Modal's own package, connected to the fake. */
export const modalSubject: RemoteSubject = {
  name: "modal",
  packages,
  pauses: false,
  startFake: startFakeModal,
  factory: ({ url }, options) =>
    modal({ ...options, tokenId: "ak-test", tokenSecret: "as-test", apiUrl: url }),
};
