import { forTests } from "../for-tests.ts";
import { type ProviderServer, startProviderServer } from "./provider-server.ts";

/** `startProviderServer` for the tests of the file. */
export function providerForTests(): ProviderServer {
  return forTests(startProviderServer, ({ close }) => close());
}
