/** Tests what front ends and pages have that connect while messages join an operation, also after a restart. */
import { HttpAgent } from "@ag-ui/client";
import type { UIMessage } from "ai";
import { expect, onTestFinished, test } from "vitest";
import { openService } from "../../app/service/open-service.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { type ServedService, serveService } from "../testing/serve-service.ts";

/** A front end that opens a thread which it does not have. */
class ConnectingAgent extends HttpAgent {
  protected override connect(input: Parameters<HttpAgent["run"]>[0]): ReturnType<HttpAgent["run"]> {
    return new HttpAgent({ url: `${this.url}/connect` }).run(input);
  }
}

interface Said {
  readonly id: string;
  readonly role: string;
  readonly content?: unknown;
}

test("a front end and a page that connect at any moment have each message once, as the history has it", async () => {
  const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
  gates[2]?.resolve();
  const models: number[] = [];
  const script = createScriptedModel(
    async (_, index) => {
      models.push(index);
      await gates[index]?.promise;
      if (index < 3) return { toolCalls: [{ name: index < 2 ? "work" : "pay", input: {} }] };
      return { text: "Done." };
    },
    { recordCalls: false },
  );
  await using project = await createTemporaryRepository({
    "kit.toml": '[agent]\nmodel = "scripted/test"\n',
    "src/agents/steered.ts": `export const triggers = { webhook: true };
const tool = (name, needsApproval) => ({ name, description: "x", input: { type: "object" }, needsApproval, execute: async () => "Worked." });
export default { kind: "kit.agent", describe: async () => ({ tools: [tool("work", false), tool("pay", true)] }) };
`,
  });
  const open = (): Promise<ServedService> =>
    serveService({
      openService: () => openService({ root: project.root, env: {}, models: { "scripted/test": script } }),
    });
  let served = await open();
  onTestFinished(() => served.close());
  const path = "/agents/steered/1";
  const key = { agent: "steered", instance_id: "1", session: "default" };
  const send = async (body: object): Promise<string> =>
    (await served.send(`${path}/dispatch`, { body })).body.operation_id;
  /** The messages of a client that connects now, once its stream has ended. */
  const connect = (): Promise<readonly Said[]> => {
    const agent = new ConnectingAgent({ url: `${served.url}${path}/agui`, threadId: "default" });
    return agent.connectAgent().then(() => agent.messages as readonly Said[]);
  };
  /** The texts of the user that a page has now: of the history, and of the stream that it takes up. */
  const reload = async (): Promise<readonly string[]> => {
    const { body } = await served.send(`${path}/ui/default/messages`);
    const texts = (body.messages as UIMessage[]).flatMap(({ role, parts }) =>
      role === "user" ? parts.flatMap((part) => (part.type === "text" ? [part.text] : [])) : [],
    );
    const reply = await served.stream(`${path}/ui/default/stream`);
    const joined = (await reply.text())
      .split("\n")
      .flatMap((line) => (line.startsWith("data: {") ? [JSON.parse(line.slice(6))] : []))
      .filter(({ type }) => type === "data-joined");
    return [...texts, ...joined.map(({ data }) => data.text)];
  };
  const calls = (count: number) => expect.poll(() => models.length).toBe(count);
  const waiting = (count: number) =>
    expect.poll(() => served.service.engine.waitingInputs?.(key)).toHaveLength(count);
  const first = await send({ input: "begin" });
  await calls(1);
  const clients = [connect()];
  const pages = [reload()];
  await send({ input: "left", join: "next_turn", client_id: "m-left" });
  await waiting(1);
  gates[0]?.resolve();
  await calls(2);
  clients.push(connect());
  pages.push(reload());
  const right = await send({ input: "right", join: "next_turn" });
  await waiting(2);
  gates[1]?.resolve();
  await expect.poll(async () => (await served.service.approvals.list()).length).toBe(1);
  clients.push(connect());
  const early = [...(await Promise.all(clients))];
  const earlyPages = await Promise.all(pages);
  await served.close();
  served = await open();
  early.push(await connect());
  earlyPages.push(await reload());
  const [call] = await served.service.approvals.list();
  await served.service.approvals.decide(call?.approval_id ?? "", { approved: true, by: "ann" });
  await calls(4);
  const late = [connect()];
  const latePages = [reload()];
  gates[3]?.resolve();
  late.push(Promise.all(late).then(connect));
  latePages.push(Promise.all(latePages).then(reload));
  const outline = (messages: readonly Said[]) =>
    messages.map(({ id, role, content }) => [role === "user" ? id : role, content ?? ""]);
  const [ended, history] = (await Promise.all(late)).map(outline);
  const users = [
    [`user-${first}`, "begin"],
    ["m-left", "left"],
    [`user-${right}`, "right"],
  ];
  const isUser = ([id]: readonly unknown[]) => id !== "assistant" && id !== "tool";
  expect(history?.filter(isUser)).toEqual(users);
  expect(ended).toEqual(history);
  // Their streams ended at the approval, of whose call they have no result.
  for (const messages of early) expect(outline(messages)).toEqual(history?.slice(0, -2));
  for (const texts of [...earlyPages, ...(await Promise.all(latePages))])
    expect(texts).toEqual(["begin", "left", "right"]);
}, 20_000);
