import type { Engine } from "./contract.ts";
import type { RestateEngineOptions } from "./restate/create-restate-engine.ts";

/** Opens the engine that several machines share: with Restate where it is named, else on Postgres alone. */
export async function openSharedEngine(options: RestateEngineOptions): Promise<Engine> {
  if (options.restate !== undefined) {
    const { createRestateEngine } = await import("./restate/create-restate-engine.ts");
    return await createRestateEngine(options);
  }
  const { createPostgresEngine } = await import("./postgres/create-postgres-engine.ts");
  return await createPostgresEngine(options);
}
