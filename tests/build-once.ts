import type { TestProject } from "vitest/node";
import { build } from "../scripts/build.ts";

/** Vitest calls it before the tests that drive what `dist/` holds. Those of the campaigns compile against its types, too. */
export async function setup({ name }: TestProject): Promise<void> {
  await build({ declarations: name === "campaigns" });
}
