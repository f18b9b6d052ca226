import { onTestFinished } from "vitest";
import { forTests } from "../../testing/for-tests.ts";
import { type ServedService, serveService } from "./serve-service.ts";

/** `serveService` for the tests of the file. */
export function serveForTests(options?: Parameters<typeof serveService>[0]): ServedService {
  return forTests(
    () => serveService(options),
    ({ close }) => close(),
  );
}

/** `serveService` for one test, at whose end it is closed. */
export async function serveForTest(options?: Parameters<typeof serveService>[0]): Promise<ServedService> {
  const served = await serveService(options);
  onTestFinished(() => served.close());
  return served;
}
