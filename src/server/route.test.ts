import { expect, test } from "vitest";
import { z } from "zod";
import { serviceActions } from "../protocol/access.ts";
import { builtInActions } from "../protocol/built-in-workflows.ts";
import { defineRoutes } from "../protocol/routes/route.ts";
import { routes } from "../protocol/routes/routes.ts";
import { bindRoutes, type Handlers } from "./route.ts";

const table = defineRoutes({
  "GET /things/{id}": {
    tag: "things",
    operation: "getThing",
    summary: "One thing",
    parameters: { id: "Its id." },
    reply: z.object({ color: z.enum(["red", "blue"]) }),
    action: "project.read",
  },
});

test("a missing handler, or one with another reply than the table declares, does not compile", () => {
  const handlers: Handlers<typeof table> = { "GET /things/{id}": () => ({ color: "red" }) };
  expect(bindRoutes(table, handlers)).toMatchObject([{ method: "GET", path: "/things/{id}" }]);
  // @ts-expect-error: the handler is missing.
  const missing: Handlers<typeof table> = {};
  // @ts-expect-error: the table knows no green.
  const other: Handlers<typeof table> = { "GET /things/{id}": () => ({ color: "green" }) };
  const whole: Handlers<typeof table> = {
    // @ts-expect-error: a route that neither streams nor has a page replies with JSON.
    "GET /things/{id}": () => new Response(),
  };
  const misspelt: Handlers<typeof table> = {
    // @ts-expect-error: the path has no such parameter.
    "GET /things/{id}": ({ segment }) => ({ color: segment("name") === "" ? "red" : "blue" }),
  };
  expect([missing, other, whole, misspelt]).toHaveLength(4);
});

test("a path with an undeclared parameter does not compile", () => {
  const described = defineRoutes({
    // @ts-expect-error: `id` has no description.
    "GET /others/{id}": { tag: "others", operation: "getOther", summary: "", reply: z.object({}) },
  });
  expect(Object.keys(described)).toEqual(["GET /others/{id}"]);
});

test("every access action belongs to a route or to a workflow of kit's own, and each route names only existing actions", () => {
  const actions = Object.values(routes).flatMap((route) => [
    ...("action" in route ? [route.action] : []),
    ...("itemAction" in route ? [route.itemAction] : []),
  ]);
  expect(new Set([...actions, ...Object.values(builtInActions)])).toEqual(new Set(serviceActions));
});
