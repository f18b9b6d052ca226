import { remoteContract } from "../remote/testing/remote-contract.ts";
import { runloop } from "./runloop-sandbox.ts";
import { runloopSubject } from "./testing/runloop-subject.ts";

remoteContract(runloopSubject, { key: "RUNLOOP_API_KEY", factory: runloop({ network: "any" }) });
