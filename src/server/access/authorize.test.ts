import { describe, expect, test } from "vitest";
import type { AuthorizeRequest } from "../../protocol/access.ts";
import { type ServedService, serveService } from "../testing/serve-service.ts";

async function withHook(
  authorize: (request: AuthorizeRequest) => boolean,
  work: (served: ServedService) => Promise<void>,
): Promise<void> {
  const served = await serveService({ authorize });
  try {
    await work(served);
  } finally {
    await served.close();
  }
}

interface Named {
  readonly name: string;
}

const namesOf = (entries: readonly Named[]): readonly string[] => entries.map(({ name }) => name);
const asJson = { headers: { accept: "application/json" } };

describe("a list contains only what its caller may see:", () => {
  const withoutSome = ({ agent, workflow }: AuthorizeRequest): boolean =>
    agent !== "echo" && workflow !== "strict";

  test("agents and workflows, also in the overview", async () => {
    await withHook(withoutSome, async ({ send }) => {
      expect(namesOf((await send("/agents")).body.agents)).toEqual(["careful", "default", "hidden"]);
      expect(namesOf((await send("/workflows")).body.workflows)).toEqual([
        "failing",
        "slow",
        "talking",
        "waiting",
      ]);
      const { body } = await send("/", asJson);
      expect([body.agents, body.workflows]).toEqual([
        ["careful", "default"],
        ["failing", "slow", "talking", "waiting"],
      ]);
    });
  });

  test("runs and dispatches, page by page", async () => {
    await withHook(withoutSome, async ({ send, service }) => {
      for (const workflow of ["strict", "talking", "strict", "talking"]) {
        await service.startRun(workflow, { n: 1 });
      }
      for (const agent of ["echo", "careful", "echo"]) {
        await service.dispatch({ agent, instance_id: "1", session: "default" }, "x");
      }
      const first = (await send("/runs?limit=3")).body;
      const second = (await send(`/runs?limit=3&cursor=${first.next_cursor}`)).body;
      const workflows = [first, second].map(({ runs }) => runs.map((run: AuthorizeRequest) => run.workflow));
      expect(workflows).toEqual([["talking", "talking"], []]);
      const { dispatches } = (await send("/dispatches")).body;
      expect(dispatches.map(({ agent }: AuthorizeRequest) => agent)).toEqual(["careful"]);
    });
  });
});

describe("specs and guidelines of the project", () => {
  const paths = ["/", "/api/specs", "/api/specs/graph", "/api/specs/diagnostics", "/api/guidelines"];

  test("specs and guidelines are hidden from callers without permission", async () => {
    await withHook(
      ({ instance }) => instance?.startsWith("own-") === true,
      async ({ send }) => {
        for (const path of [...paths, "/api/specs/some-id", "/api/guidelines/some-id"]) {
          expect([path, (await send(path, asJson)).status]).toEqual([path, 403]);
        }
        const posts = ["specs/impact", "specs/validate", "guidelines/convert", "guidelines/export"];
        for (const path of posts) {
          expect([path, (await send(`/api/${path}`, { body: {} })).status]).toEqual([path, 403]);
        }
        expect((await send("/health")).status).toBe(200);
      },
    );
  });

  test("guidelines are written only by callers with permission", async () => {
    await withHook(
      ({ action }) => action === "project.read",
      async ({ send }) => {
        for (const path of paths) expect([path, (await send(path, asJson)).status]).toEqual([path, 200]);
        const [guideline] = (await send("/api/guidelines")).body.guidelines;
        const convert = { guideline_id: guideline.id, format: "steering" };
        expect((await send("/api/guidelines/convert", { body: convert })).status).toBe(200);
        const written = await send("/api/guidelines/convert", { body: { ...convert, preview: false } });
        expect([written.status, written.body.error.type]).toEqual([403, "forbidden"]);
      },
    );
  });
});
