import { afterAll, beforeAll, describe, test } from "vitest";
import { freePort } from "../../testing/free-port.ts";
import { type PostgresServer, startPostgres } from "../../testing/postgres-server.ts";
import { hasRestate, type RestateServers, startRestate } from "../../testing/restate-server.ts";
import { type EngineCaseLimits, engineCases } from "../contract-cases.ts";
import { createRestateEngine } from "./create-restate-engine.ts";
import { Balancer } from "./testing/balancer.ts";

let postgres: PostgresServer;
let restate: RestateServers;
const balancers: Balancer[] = [];

/**
 * These cases check which of several instances or principals gets the only slot next, if all were accepted at the same moment. Restate orders the
 * calls of a key, not keys: a node begins with the first for which it is called, and shares its slots among those it was called for.
 */
const aboutOrderOfInstances = [
  "a session with much work does not delay another session",
  "a principal with much work does not delay another, whatever sessions it uses",
  "after a restart principals still have equal shares, and an input keeps its principal",
];

describe.skipIf(!hasRestate)(
  "The Restate engine, with the server of npm run test:vendors, as an engine",
  () => {
    beforeAll(async () => {
      [postgres, restate] = await Promise.all([startPostgres(), startRestate()]);
    });

    afterAll(async () => {
      await Promise.all(balancers.map((balancer) => balancer.close()));
      await Promise.all([postgres?.stop(), restate?.stop()]);
    });

    async function open(limits: EngineCaseLimits = {}) {
      const port = await freePort();
      const balancer = balancers.at(-1);
      if (balancer === undefined) throw new Error("Nothing to open again.");
      balancer.add(port);
      return await createRestateEngine({
        url: postgres.url,
        schema: `engine_${balancers.length}`,
        limits,
        restate: {
          ingress: restate.ingress,
          admin: restate.admin,
          listen: `127.0.0.1:${port}`,
          address: balancer.address,
        },
      });
    }

    async function create(limits?: EngineCaseLimits) {
      balancers.push(await Balancer.start());
      return await open(limits);
    }

    for (const { name, run } of engineCases({ create, reopen: open }))
      test.skipIf(aboutOrderOfInstances.includes(name))(name, run);
  },
);
