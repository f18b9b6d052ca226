import { build } from "../scripts/build.ts";

/** Vitest calls it before the tests of the projects `whole` and `faults`, which drive what `dist/` holds. */
export async function setup(): Promise<void> {
  await build({ check: false });
}
