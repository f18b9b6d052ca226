import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../testing/free-port.ts";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import { hasRestate, type RestateServers, startRestate } from "../../testing/restate-server.ts";
import { openWay } from "../../testing/way-to-server.ts";
import type { Engine } from "../contract.ts";
import { createRestateEngine } from "./create-restate-engine.ts";
import { callNode, createIdentity, signCall } from "./testing/identity.ts";

const folder = mkdtempSync(join(tmpdir(), "kit-restate-identity-"));
const identity = createIdentity();
const stranger = createIdentity();
let postgres: PostgresServer;
let restate: RestateServers;
let count = 0;

interface Node {
  readonly engine: Engine;
  readonly schema: string;
  readonly address: string;
  /** The number of begun inputs. */
  begun(): number;
}

interface NodeOptions {
  readonly identityKey?: string;
  readonly address?: string;
  readonly port?: number;
  readonly schema?: string;
  readonly service?: string;
}

const input = { agent: "worker", instance_id: "one", session: "default", input: 1 };

async function isDone({ engine }: Node): Promise<void> {
  const { dispatch_id } = await engine.admit(input);
  expect(await engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed" });
}

/** The problem as an operator sees it: from the node itself, and in the state of the cluster. */
async function problemOf({ engine }: Node) {
  const state = await engine.state?.();
  const problem = state?.problems.find(({ code }) => code === "engine_problem");
  const warning = engine.warning?.();
  return { warning: warning?.message, hint: warning?.hint, listed: problem?.message };
}

const none = { warning: undefined, hint: undefined, listed: undefined };

describe.skipIf(!hasRestate)("A node that Restate calls, with an identity key", () => {
  beforeAll(async () => {
    const identityKeyFile = join(folder, "key.pem");
    writeFileSync(identityKeyFile, identity.pem);
    [postgres, restate] = await Promise.all([startPostgres(), startRestate({ identityKeyFile })]);
  });

  afterAll(async () => {
    await Promise.all(engines.map((engine) => engine.drain({ timeoutMs: 0 })));
    await Promise.all([postgres?.stop(), restate?.stop()]);
    rmSync(folder, { recursive: true });
  });

  const engines: Engine[] = [];

  async function startNode(options: NodeOptions = {}): Promise<Node> {
    const { identityKey = identity.publicKey, port = await freePort(), address } = options;
    count += 1;
    const { schema = `problems_${count}`, service } = options;
    const { ingress, admin } = restate;
    const engine = await createRestateEngine({
      url: postgres.url,
      schema,
      restate: { ingress, admin, listen: `127.0.0.1:${port}`, identityKey, address, service },
    });
    engines.push(engine);
    let begun = 0;
    await engine.start({
      dispatch: async () => {
        begun += 1;
        return `done at ${port}`;
      },
      run: async () => null,
    });
    return { engine, schema, address: `http://127.0.0.1:${port}`, begun: () => begun };
  }

  test("answers calls that Restate has signed, and refuses those without its signature or with another", async () => {
    const node = await startNode();
    await isDone(node);
    expect(node.engine.warning?.()).toBeUndefined();
    expect(await callNode(node.address, "/discover", signCall("/discover", identity))).toBe(200);
    const invoke = `/invoke/${node.schema}/turn`;
    const foreign = [
      [{}, "/discover"],
      [{}, invoke],
      [signCall("/discover", stranger), "/discover"],
      [signCall(invoke, stranger), invoke],
      [signCall(invoke, { ...stranger, publicKey: identity.publicKey }), invoke],
      [{ "x-restate-signature-scheme": "v1", "x-restate-jwt-v1": "x.y.z" }, invoke],
      [{ "x-restate-signature-scheme": "unsigned" }, invoke],
    ] as const;
    for (const [headers, path] of foreign) expect(await callNode(node.address, path, headers)).toBe(401);
    expect(node.begun()).toBe(1);
    await isDone(node);
  });

  test.concurrent("reports how to correct a wrong key; a node with the right key does its accepted work", async ({
    expect,
  }) => {
    const wrong = await startNode({ identityKey: stranger.publicKey });
    const { dispatch_id } = await wrong.engine.admit(input);
    await expect
      .poll(() => problemOf(wrong))
      .toMatchObject({
        warning: `Restate reaches ${wrong.address}, but its calls are not signed with the identity key set here.`,
        hint: expect.stringContaining("KIT_RESTATE_IDENTITY_KEY"),
        listed: expect.stringContaining("its calls are not signed with the identity key"),
      });
    expect(wrong.begun()).toBe(0);
    const right = await startNode({ schema: wrong.schema });
    const record = await right.engine.awaitDispatch(dispatch_id);
    expect(`http://127.0.0.1:${String(record?.result).slice("done at ".length)}`).toBe(right.address);
  });

  test.concurrent("reports an address that does not lead to it, until it does", async ({ expect }) => {
    const port = await freePort();
    const relay = await openWay(new URL(`http://127.0.0.1:${port}`));
    await relay.close();
    const node = await startNode({ port, address: relay.url });
    const { dispatch_id } = await node.engine.admit(input);
    await expect
      .poll(() => problemOf(node))
      .toMatchObject({
        warning: expect.stringMatching(/^Restate does not reach this node at http:.*refused/),
        hint: expect.stringContaining("engine.restate.address"),
        listed: expect.stringContaining("does not reach this node"),
      });
    await relay.open();
    expect(await node.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed" });
    await expect.poll(() => problemOf(node)).toEqual(none);
    await relay.close();
  });

  test.concurrent("reports that another cluster uses the name of its object, and loses no work", async ({
    expect,
  }) => {
    const node = await startNode({ service: "taken" });
    await isDone(node);
    const other = await startNode({ service: "taken" });
    const { dispatch_id } = await node.engine.admit({ ...input, instance_id: "two" });
    await expect
      .poll(() => problemOf(node))
      .toMatchObject({
        warning: "restate accepts the calls for work, but does not call this node, so work waits.",
        hint: expect.stringContaining("other cluster has registered"),
        listed: expect.stringContaining("does not call this node"),
      });
    expect(await node.engine.getDispatch(dispatch_id)).toMatchObject({ status: "queued" });
    expect(other.begun()).toBe(0);
    // The operator restarts the node with a unique name.
    await node.engine.drain({ timeoutMs: 0 });
    const renamed = await startNode({ schema: node.schema, service: "own" });
    expect(await renamed.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed" });
  });

  test("registers again after Restate has lost its registration, and reports that Restate is unavailable", async () => {
    const node = await startNode();
    const reply = await fetch(`${restate.admin[0]}/services/${node.schema}`);
    const { deployment_id } = (await reply.json()) as { readonly deployment_id: string };
    await fetch(`${restate.admin[0]}/deployments/${deployment_id}?force=true`, { method: "DELETE" });
    await isDone(node);
    await restate.kill();
    const { dispatch_id } = await node.engine.admit({ ...input, instance_id: "two" });
    await expect
      .poll(() => problemOf(node))
      .toMatchObject({
        warning: "Restate does not answer (ECONNREFUSED).",
        hint: expect.stringContaining("engine.restate.ingress"),
        listed: expect.stringContaining("Restate does not answer"),
      });
    await restate.start();
    expect(await node.engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed" });
    await expect.poll(() => problemOf(node)).toEqual(none);
  });
});
