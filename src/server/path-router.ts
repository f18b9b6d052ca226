import type { Result, Router } from "hono/router";

/**
 * Hono's own routers try every rule that could match, because handlers may hand on to each other. Here a path has
 * one handler: a fixed path is looked up, so that `/api/specs/graph` is never taken for the spec with the id "graph",
 * and the others are compared part by part. `*` is what no other path has matched.
 */
export function createPathRouter<Handler>(): Router<Handler> {
  const fixed = new Map<string, Result<Handler>>();
  const patterns = new Map<number, Pattern<Handler>[]>();
  let rest: Result<Handler> = [[]];
  return {
    name: "PathRouter",
    add(_, path, handler) {
      const result: Result<Handler> = [[[handler, {}]]];
      if (path === "/*") rest = result;
      else if (!path.includes("/:")) fixed.set(path, result);
      else {
        const parts = path.split("/");
        patterns.set(parts.length, [...(patterns.get(parts.length) ?? []), { parts, result }]);
      }
    },
    match(_, path) {
      const known = fixed.get(path);
      if (known !== undefined) return known;
      const parts = path.split("/");
      const found = patterns.get(parts.length)?.find((pattern) => isMatch(pattern.parts, parts));
      return found?.result ?? rest;
    },
  };
}

interface Pattern<Handler> {
  readonly parts: readonly string[];
  readonly result: Result<Handler>;
}

function isMatch(pattern: readonly string[], parts: readonly string[]): boolean {
  return parts.every((part, at) => (pattern[at]?.startsWith(":") ? part !== "" : part === pattern[at]));
}
