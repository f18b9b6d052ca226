import type { KitConfig } from "../../app/config/config-schema.ts";
import { isolationOfConfig } from "../../app/config/sandbox-config.ts";
import type { Check } from "./check.ts";

/** Whether a wall stands around the commands of agents, and what would let one stand. */
export async function checkCommands(config: KitConfig): Promise<Check> {
  const name = "commands";
  const { wall, description, hint } = await isolationOfConfig(config);
  const mode = config.sandbox?.isolation ?? "auto";
  if (wall !== "none" || mode === "off") return { name, status: "ok", message: description };
  return {
    name,
    status: mode === "required" ? "error" : "warning",
    message: `${description}${mode === "required" ? " None is run, as sandbox.isolation is required." : ""}`,
    hint: hint ?? "Without a wall, grant agents only commands that you would let a stranger run.",
  };
}
