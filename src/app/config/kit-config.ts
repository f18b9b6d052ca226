import type { KitConfig } from "./config-schema.ts";

/** Gives `kit.config.ts` its types: `export default defineConfig({ … })`. Returns what it is given. */
export function defineConfig(config: KitConfig): KitConfig {
  return config;
}
