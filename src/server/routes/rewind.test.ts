/** Tests `rewind_before` over HTTP on the databases that keep sessions and accepted work. */
import { expect, onTestFinished, test } from "vitest";
import { openService } from "../../app/service/open-service.ts";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { type ServedService, serveService } from "../testing/serve-service.ts";

const server = postgresForTests();

/** A model that says which of the user's texts it reads. */
const model = createScriptedModel(({ prompt }) => ({
  text: prompt
    .flatMap((message) =>
      message.role === "user"
        ? message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).slice(-1)
        : [],
    )
    .join("|"),
}));

async function serve(config: string): Promise<ServedService> {
  const files = { "kit.toml": `${config}[agent]\nmodel = "scripted/test"\n` };
  const models = { "scripted/test": model };
  return await serveService({ files, openService: ({ root }) => openService({ root, env: {}, models }) });
}

test.each(["sqlite", "postgres"])("a session goes on before a message over HTTP: %s", async (database) => {
  const { url } = server;
  const served = await serve(database === "sqlite" ? "" : `store = "${url}"\nengine = "${url}"\n`);
  onTestFinished(() => served.close());
  const path = "/agents/echo/rewound";
  const sendMessage = async (message: string, more: object = {}): Promise<string> => {
    const { body } = await served.send(path, { body: { message, ...more } });
    return body.result?.text ?? body.error.type;
  };
  await sendMessage("one", { client_id: "m1" });
  await sendMessage("two", { client_id: "m2" });
  expect(await sendMessage("three")).toBe("one|two|three");
  expect(await sendMessage("zwei", { client_id: "m2", rewind_before: "m2" })).toBe("one|zwei");
  expect(await sendMessage("x", { rewind_before: "m3" })).toBe("not_found");
  const { operations } = (await served.send(`${path}/operations`)).body;
  const [first] = operations.filter(({ client_id }: { client_id?: string }) => client_id === "m1");
  const again = { input: "eins", rewind_before: first.operation_id };
  const headers = { "idempotency-key": "again" };
  const sent = [1, 2].map(() => served.send(`${path}/dispatch`, { body: again, headers }));
  const ids = (await Promise.all(sent)).map(({ body }) => body.dispatch_id);
  expect(new Set(ids).size).toBe(1);
  expect(await sendMessage("four")).toBe("eins|four");
  const { body: history } = await served.send(`${path}/history`);
  expect(JSON.stringify(history)).not.toContain("zwei");
  const { body: after } = await served.send(`${path}/operations`);
  const rewound = after.operations.flatMap((one: { rewound_before?: string }) => one.rewound_before ?? []);
  expect(rewound).toHaveLength(2);
  const fork = { before: again.rewind_before };
  expect(
    (await served.send(path, { body: { message: "x", session: "new", fork: { before: "m3" } } })).body.error
      .type,
  ).toBe("not_found");
  expect((await served.send(path, { body: { message: "x", fork } })).body.error.type).toBe("conflict");
  for (const more of [{ history: [{ role: "user", content: "x" }] }, { rewind_before: "m3" }]) {
    const refused = { message: "x", session: "refused", fork, ...more };
    expect(await served.send(path, { body: refused })).toMatchObject({ status: 400 });
    expect((await served.send(`${path}/history?session=refused`)).body.messages ?? []).toEqual([]);
  }
  const { operations: all } = (await served.send(`${path}/operations?session=default`)).body;
  const last = all.find(({ status }: { status: string }) => status === "completed");
  const { body: receipt } = await served.send(`${path}/dispatch`, {
    body: { input: "uno", session: "branch", fork: { before: last.operation_id } },
  });
  await served.service.engine.awaitDispatch(receipt.dispatch_id);
  const { body: branch } = await served.send(`${path}/operations?session=branch`);
  expect(branch.operations[0]).toMatchObject({
    operation_id: receipt.operation_id,
    forked_from: { session: "default", before: last.operation_id },
  });
  expect(await sendMessage("dos", { session: "branch" })).toBe("eins|uno|dos");
});
