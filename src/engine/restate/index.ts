/** `kit/engines/restate`: the engine on Postgres, with Restate calling its nodes. Needs `pg` and `@restatedev/restate-sdk`. */
import "../../base/require-node.ts";

export {
  createRestateEngine,
  type RestateEngineOptions,
  type RestateOptions,
} from "./create-restate-engine.ts";
