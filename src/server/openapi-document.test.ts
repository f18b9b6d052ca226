import { expect, onTestFinished, test } from "vitest";
import { createServer } from "./create-server.ts";
import { serveForTest } from "./testing/serve-for-tests.ts";
import { shopFiles } from "./testing/shop-files.ts";
import { temporaryProject } from "./testing/temporary-project.ts";

test("the description names every route, and each of its references resolves", async () => {
  const shop = await temporaryProject(shopFiles);
  onTestFinished(() => shop.remove());
  const { app } = createServer({ project: shop.project });
  const document = JSON.parse(await (await app.request("/openapi.json")).text());
  expect(document.openapi).toBe("3.1.0");
  const mounted = new Set(app.routes.map(({ path }) => path.replace(/:(\w+)/g, "{$1}")));
  mounted.delete("/*");
  expect(new Set(Object.keys(document.paths))).toEqual(mounted);
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)];
  expect(references.length).toBeGreaterThan(20);
  for (const [, name] of references) expect(document.components.schemas).toHaveProperty(String(name));
  expect(JSON.stringify(document)).not.toContain("$defs");
});

test("the description matches the schemas that check requests", async () => {
  const shop = await temporaryProject({});
  onTestFinished(() => shop.remove());
  const { app } = createServer({ project: shop.project });
  const { paths, components } = JSON.parse(await (await app.request("/openapi.json")).text());
  const limit = paths["/api/specs"].get.parameters.find((one: { name: string }) => one.name === "limit");
  expect(limit.schema).toEqual({ type: "integer", minimum: 1, maximum: 1000 });
  expect(paths["/api/specs/{id}"].get.parameters[0]).toMatchObject({
    name: "id",
    in: "path",
    required: true,
  });
  const convert = paths["/api/guidelines/convert"].post;
  expect(convert.requestBody.content["application/json"].schema.required).toEqual(["guideline_id", "format"]);
  expect(Object.keys(convert.responses)).toEqual([
    "200",
    "400",
    "401",
    "403",
    "404",
    "409",
    "413",
    "415",
    "429",
    "500",
  ]);
  expect(components.schemas.SpecBlock.required).not.toContain("summary");
});

test("with a service the description has agents, workflows and runs, streams and headers", async () => {
  const served = await serveForTest();
  const { body } = await served.send("/openapi.json");
  const operations = Object.values<object>(body.paths).flatMap((path) => Object.values(path));
  const ids = operations.map(({ operationId }) => operationId);
  expect(new Set(ids).size).toBe(ids.length);
  const references = [...JSON.stringify(body).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)];
  for (const [, name] of references) expect(body.components.schemas).toHaveProperty(String(name));
  for (const { parameters, operationId } of operations) {
    for (const parameter of parameters.filter((parameter: { in: string }) => parameter.in === "path")) {
      expect([operationId, parameter.name, parameter.description]).not.toContain("");
    }
  }
  const prompt = body.paths["/agents/{name}/{id}"].post;
  expect(prompt.parameters.map((one: { name: string }) => one.name)).toEqual([
    "name",
    "id",
    "Idempotency-Key",
  ]);
  expect(Object.keys(prompt.responses["200"].content)).toEqual(["application/json", "text/event-stream"]);
  expect(Object.keys(body.paths["/workflows/{name}"].post.responses)).toEqual(
    expect.arrayContaining(["200", "202", "404", "429", "503"]),
  );
  expect(Object.keys(body.paths["/runs/{run_id}/stream"].get.responses)).toContain("204");
  const [name] = prompt.parameters;
  for (const { pattern, minLength } of [
    name.schema,
    prompt.requestBody.content["application/json"].schema.properties.session,
  ]) {
    expect(minLength).toBe(1);
    for (const valid of ["pr-42", "a:b", "ü 🚀", "...", ".a"]) expect(valid).toMatch(new RegExp(pattern));
    for (const wrong of ["", ".", "..", "a/b", "a\\b", "a\nb", "a\u202eb"])
      expect(wrong).not.toMatch(new RegExp(pattern));
  }
  expect(body.components.schemas.Event.oneOf.length).toBeGreaterThan(25);
});
