import { hash } from "node:crypto";
import type { SandboxOwner } from "../contract.ts";

/**
 * The folder name of a session's workspace: one name below the folder of all workspaces, whatever the
 * parts hold. What a person can read of it is for people; the hash of all three parts, as JSON, tells
 * any two sessions apart.
 */
export function workspaceName({ agent, instance_id, session }: SandboxOwner): string {
  const parts = [agent, instance_id, session];
  const digest = hash("sha256", JSON.stringify(parts)).slice(0, 32);
  return [...parts.map(readable), digest].filter((part) => part !== "").join("-");
}

function readable(text: string): string {
  return text
    .toLowerCase()
    .slice(0, 256)
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 24)
    .replace(/^-+|-+$/g, "");
}
