import { remoteContract } from "../remote/testing/remote-contract.ts";
import { e2b } from "./e2b-sandbox.ts";
import { e2bSubject } from "./testing/e2b-subject.ts";

remoteContract(e2bSubject, { key: "E2B_API_KEY", factory: e2b({ network: "any" }) });
