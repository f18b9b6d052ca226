import type { Owned } from "../cluster.ts";

/** The key under which Restate knows an instance, or a run: operators read it in Restate's own pages. */
export function toRestateKey(owned: Owned): string {
  if ("run_id" in owned) return `run/${encodeURIComponent(owned.run_id)}`;
  return `agent/${encodeURIComponent(owned.agent)}/${encodeURIComponent(owned.instance_id)}`;
}

/** Undefined for a key that is none of kit's. */
export function fromRestateKey(key: string): Owned | undefined {
  try {
    const [kind, ...names] = key.split("/");
    const [first, second, ...more] = names.map((name) => decodeURIComponent(name));
    if (first === undefined || first === "" || more.length > 0) return undefined;
    if (kind === "run" && second === undefined) return { run_id: first };
    return kind === "agent" && second !== undefined ? { agent: first, instance_id: second } : undefined;
  } catch {
    return undefined;
  }
}
