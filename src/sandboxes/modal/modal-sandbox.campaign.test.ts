import { describe } from "vitest";
import { remoteContract } from "../remote/testing/remote-contract.ts";
import { modal } from "./modal-sandbox.ts";
import { hasModal, modalSubject } from "./testing/modal-subject.ts";

describe.skipIf(!hasModal)("with the package of npm run test:vendors", () => {
  remoteContract(modalSubject, { key: "MODAL_TOKEN_ID", factory: modal({ network: "any" }) });
});
