/**
 * A worker whose Durable Objects run the contract suites on their own SQLite. Each test has its own object, named by
 * the request.
 */
import type { ContractCase } from "../../../src/base/contract-case.ts";
import { eventLogCases, type OpenEventLog } from "../../../src/engine/cases/event-log-cases.ts";
import { engineCases } from "../../../src/engine/contract-cases.ts";
import { createEmbeddedEngine } from "../../../src/engine/embedded/create-embedded-engine.ts";
import { openEventLog } from "../../../src/engine/embedded/events/event-log.ts";
import { DurableDatabase, type DurableStorage } from "../../../src/sqlite/durable-database.ts";
import { sessionStoreCases } from "../../../src/stores/contract-cases.ts";
import { SqliteSessionStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { createManualClock } from "../../../src/testing/manual-clock.ts";

/** The storage of the object that is running a test. */
let storage: DurableStorage;
const open = (store: string) => new DurableDatabase(storage, store);

/** Removes the tables of the previous store, so that several stores of one test are separate. */
function empty(): void {
  const rows = [
    ...storage.sql.exec(
      "SELECT name, type FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE '\\_%' ESCAPE '\\'",
    ),
  ];
  for (const { name } of rows) storage.sql.exec(`DROP TABLE IF EXISTS "${name}"`);
}

function first<Value>(make: () => Value): Value {
  empty();
  return make();
}

const createStore = () => new SqliteSessionStore({ file: ":memory:" }, open("sessions"));
const storeCases = sessionStoreCases({
  create: () => first(createStore),
  reopen: createStore,
});

const casesOfEngine = engineCases({
  create: (limits = {}) => first(() => createEmbeddedEngine({ open, limits })),
  reopen: (limits = {}) => createEmbeddedEngine({ open, limits }),
});

function openLog(fence: number): OpenEventLog {
  const clock = createManualClock();
  const lease = { fence, signal: new AbortController().signal };
  const log = openEventLog({ database: open("events"), clock, lease });
  return {
    log,
    settle: () => clock.advance(200),
    close: async () => log.close(),
    reopen: () => openLog(fence + 1),
  };
}
const logCases = eventLogCases({
  rounds: 12,
  create: () => first(() => openLog(1)),
});

const prefixed = (name: string, cases: readonly ContractCase[]): readonly ContractCase[] =>
  cases.map((one) => ({ ...one, name: `${name}: ${one.name}` }));
const collected: readonly ContractCase[] = [
  ...prefixed("session store", storeCases),
  ...prefixed("engine", casesOfEngine),
  ...prefixed("event log", logCases),
];

export class Tests {
  readonly #storage: DurableStorage;

  constructor({ storage: own }: { readonly storage: DurableStorage }) {
    this.#storage = own;
  }

  async fetch(request: Request): Promise<Response> {
    const name = new URL(request.url).searchParams.get("name");
    const found = collected.find((one) => one.name === name);
    if (found === undefined) return Response.json({ error: `There is no test ${name}.` });
    storage = this.#storage;
    try {
      await found.run();
      return Response.json({ passed: true });
    } catch (error) {
      return Response.json({
        error: error instanceof Error ? (error.stack ?? error.message) : String(error),
      });
    }
  }
}

interface Bindings {
  readonly TESTS: {
    idFromName(name: string): unknown;
    get(id: unknown): { fetch(request: Request): Promise<Response> };
  };
}

const worker = {
  async fetch(request: Request, { TESTS }: Bindings): Promise<Response> {
    const { searchParams, pathname } = new URL(request.url);
    if (pathname === "/tests") return Response.json(collected.map(({ name }) => name));
    return await TESTS.get(TESTS.idFromName(searchParams.get("name") ?? "")).fetch(request);
  },
};

// biome-ignore lint/style/noDefaultExport: workers have one.
export { worker as default };
