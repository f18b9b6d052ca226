import { forTests } from "../../testing/for-tests.ts";
import { type ServedService, serveService } from "./serve-service.ts";

/** `serveService` for the tests of the file. */
export function serveForTests(options?: Parameters<typeof serveService>[0]): ServedService {
  return forTests(
    () => serveService(options),
    ({ close }) => close(),
  );
}
