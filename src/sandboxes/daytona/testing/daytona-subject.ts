import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { RemoteSubject } from "../../remote/testing/remote.suite.ts";
import { daytona } from "../daytona-sandbox.ts";
import { startFakeDaytona } from "./fake-daytona.ts";

const packages = fileURLToPath(new URL("../../../../vendors/node_modules", import.meta.url));

/** Whether the vendor's package is installed; `npm run test:vendors` installs it. */
export const hasDaytona: boolean = existsSync(`${packages}/@daytona/sdk`);

/** Daytona's own package, connected to the fake. */
export const daytonaSubject: RemoteSubject = {
  name: "daytona",
  packages,
  startFake: startFakeDaytona,
  factory: ({ url }, options) => daytona({ ...options, apiKey: "dtn_test", apiUrl: url }),
};
