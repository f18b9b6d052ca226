import type { TestProject } from "vitest/node";
import { build } from "../scripts/build.ts";

/** Builds `dist/` before the tests that use it; Vitest calls it. The tests of the campaigns also compile against its types. */
export async function setup({ name }: TestProject): Promise<void> {
  await build({ declarations: name === "campaigns" });
}
