import { hash } from "node:crypto";
import type { SandboxOwner } from "../contract.ts";

/**
 * The folder name of a session's workspace, safe whatever the parts hold. The readable beginning is for people;
 * the hash of all three parts makes the name unique.
 */
export function workspaceName({ agent, instance_id, session }: SandboxOwner): string {
  const parts = [agent, instance_id, session];
  const digest = hash("sha256", JSON.stringify(parts)).slice(0, 32);
  return [...parts.map(toReadable), digest].filter((part) => part !== "").join("-");
}

function toReadable(text: string): string {
  return text
    .toLowerCase()
    .slice(0, 256)
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 24)
    .replace(/^-+|-+$/g, "");
}
