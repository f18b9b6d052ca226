import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Creates a folder that `atEnd` removes: `afterAll` with the tests of the file, `onTestFinished` with the test. Links are resolved. */
export function testFolder(atEnd: (remove: () => void) => void): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "kit-test-")));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
