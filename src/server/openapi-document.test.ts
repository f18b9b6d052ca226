import { expect, test } from "vitest";
import { createServer } from "./create-server.ts";
import { shopFiles } from "./testing/shop-files.ts";
import { temporaryProject } from "./testing/temporary-project.ts";

test("the description names every route, and each of its references resolves", async () => {
  const shop = await temporaryProject(shopFiles);
  try {
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
  } finally {
    await shop.remove();
  }
});

test("it says what the schemas check", async () => {
  const shop = await temporaryProject({});
  try {
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
    expect(convert.requestBody.content["application/json"].schema.required).toEqual([
      "guideline_id",
      "format",
    ]);
    expect(Object.keys(convert.responses)).toEqual([
      "200",
      "400",
      "401",
      "403",
      "404",
      "409",
      "413",
      "415",
      "500",
    ]);
    expect(components.schemas.SpecBlock.required).not.toContain("summary");
  } finally {
    await shop.remove();
  }
});
