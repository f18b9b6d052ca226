import type { KitConfig } from "./config-schema.ts";

/**
 * Gives `kit.config.ts` its types: `export default defineConfig({ … })`. Returns what it is given.
 *
 * @example
 * ```ts
 * import { defineConfig } from "kit";
 *
 * export default defineConfig({ agent: { model: "anthropic/claude-sonnet-4-6", max_turns: 40 } });
 * ```
 */
export function defineConfig(config: KitConfig): KitConfig {
  return config;
}
