import { describe } from "vitest";
import { remoteContract } from "../remote/testing/remote-contract.ts";
import { daytona } from "./daytona-sandbox.ts";
import { daytonaSubject, hasDaytona } from "./testing/daytona-subject.ts";

describe.skipIf(!hasDaytona)("with the package of npm run test:vendors", () => {
  remoteContract(daytonaSubject, { key: "DAYTONA_API_KEY", factory: daytona({ network: "any" }) });
});
