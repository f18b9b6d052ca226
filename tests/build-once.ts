import { build } from "../scripts/build.ts";

/** Vitest calls it before the tests of the project `whole`, which drive what `dist/` holds. */
export async function setup(): Promise<void> {
  await build();
}
