/** `kit/cloudflare`: runs an application as a Cloudflare worker; `kit build --target cloudflare` writes the module that calls it. */

export {
  createWorker,
  type DurableKit,
  type DurableState,
  type KitWorker,
  type WorkerApplication,
  type WorkerBindings,
} from "./create-worker.ts";
