import { expect, test } from "vitest";
import { parseConfig } from "./config-schema.ts";

const pathsOf = (server: unknown) => parseConfig({ server }).issues.map(({ path }) => path);

test("the access of a server is functions and numbers, each fault named by its key", () => {
  const server = {
    auth: () => ({ id: "alice" }),
    authorize: () => true,
    rate_limit: { requests: 10, per_seconds: 1, burst: 20 },
  };
  expect(parseConfig({ server })).toEqual({ config: { server }, issues: [] });
  expect(pathsOf({ authorize: "everybody" })).toEqual(["server.authorize"]);
  expect(pathsOf({ rate_limit: {} })).toEqual(["server.rate_limit.requests"]);
  expect(pathsOf({ rate_limit: { requests: 0, per_seconds: 0.5, burts: 1 } })).toEqual([
    "server.rate_limit.requests",
    "server.rate_limit.per_seconds",
    "server.rate_limit.burts",
  ]);
});
