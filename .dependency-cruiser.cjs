// Who may enter which room: the table of AGENTS.md as a rule. A type import is still knowledge, so the
// parser below keeps type imports in the picture, and type cycles are cycles.
const { Visitor } = require("@swc/core/Visitor.js");
const manifest = require("./package.json");

// The visitor that comes with swc predates `using`, and stops there. Its declarations are those of `const`.
const { visitStatement } = Visitor.prototype;
Visitor.prototype.visitStatement = function (statement) {
  if (statement.type !== "UsingDeclaration") return visitStatement.call(this, statement);
  statement.decls = this.visitVariableDeclarators(statement.decls);
  return statement;
};

// kit loads these where a project has them; npm does not hear of them as peers.
const optionalPackages = Object.keys(manifest.kit.optionalPackages);

const low = ["base", "json-schema", "protocol"];
const domain = [...low, "specs", "guidelines"];
// What an implementation family promises stands in a file of its own; who builds on it enters that only.
const contracts =
  "^src/(backends|models|python|sandboxes|stores|engine)/contract[.]ts$|^src/engine/event-log-contract[.]ts$";
const families = ["backends", "models", "sandboxes", "stores", "engine"];
const wired = [
  ...domain,
  "agents",
  "workflows",
  "files",
  "processes",
  "postgres",
  "project",
  "mcp",
  "python",
  "webhooks",
  "otel",
  "interfaces",
  "app",
  ...families,
];

/** Each room, and the rooms it may import from besides itself. */
const rooms = {
  base: [],
  "json-schema": ["base"],
  protocol: ["base"],
  files: low,
  sqlite: [...low, "files"],
  specs: low,
  guidelines: [...low, "specs"],
  agents: low,
  backends: low,
  models: low,
  processes: [...low, "files"],
  sandboxes: [...low, "files", "processes", "sqlite"],
  postgres: low,
  stores: [...low, "files", "sqlite", "postgres"],
  engine: [...low, "files", "sqlite", "postgres"],
  webhooks: low,
  client: low,
  interfaces: low,
  python: [...low, "processes"],
  otel: low,
  workflows: [...low, "agents"],
  contracts: low,
  project: [...domain, "files", "processes", "sqlite"],
  mcp: [...domain, "project", "agents", "processes", "sqlite"],
  app: wired,
  server: wired,
  cloudflare: [...wired, "sqlite", "server"],
  build: wired,
  cli: [...wired, "sqlite", "server", "client", "build"],
  testing: [...wired, "sqlite", "server", "client", "build", "cli"],
};

/** Packages that one room alone knows; the rest of the house speaks its own words. */
const homes = {
  "@hono/node-server": "server",
  hono: "server",
  ws: "server",
  croner: "engine",
  pg: "postgres",
  "@restatedev/[^/]+": "engine/restate",
  "@runloop/api-client": "sandboxes/runloop",
  e2b: "sandboxes/e2b",
  "@agentclientprotocol/sdk": "interfaces/acp|cli/acp",
  "vscode-languageserver": "cli/lsp",
  "@modelcontextprotocol/[^/]+": "mcp|server/mcp|cli/commands",
  jose: "server/access",
  "@noble/hashes": "guidelines",
  ignore: "files",
  sax: "project",
  re2js: "sandboxes|json-schema",
  commander: "cli",
  "string-width": "cli",
  "smol-toml": "app|build|project",
  rolldown: "build",
  "@lezer/python": "python",
  "@pydantic/monty": "python",
  "@opentelemetry/api": "otel|app/telemetry",
  "@opentelemetry/(?!api)[^/]+": "app/telemetry",
  "@ai-sdk/(?!provider)[^/]+": "models",
  "@langchain/[^/]+": "backends",
  "@openai/agents": "backends",
};

const test = "[.](test|suite)[.]ts$|/testing/";
const error = (name, comment, rule) => ({ name, comment, severity: "error", ...rule });

module.exports = {
  forbidden: [
    error("no-cycles", "A cycle, of types too, joins two files into one that nobody can read alone.", {
      from: {},
      to: { circular: true },
    }),
    error("resolvable", "An import that does not resolve.", { from: {}, to: { couldNotResolve: true } }),
    error("rooms-are-listed", "A new room under src/ belongs into the table above.", {
      from: {},
      to: { path: "^src/[^/]+/", pathNot: `^src/(${Object.keys(rooms).join("|")})/` },
    }),
    ...Object.entries(rooms).map(([room, may]) =>
      error(`${room}-may-enter`, `src/${room} imports from: ${[room, ...may].join(", ")}.`, {
        from: { path: `^src/${room}/`, pathNot: test },
        to: {
          path: "^src/",
          pathNot: [`^src/(${[room, ...may].join("|")})/`, ...(low.includes(room) ? [] : [contracts])],
        },
      }),
    ),
    error(
      "siblings-are-strangers",
      "Implementations of one contract share src/sandboxes/host and remote, not each other.",
      {
        from: { path: "^src/sandboxes/([^/]+)/", pathNot: test },
        to: { path: "^src/sandboxes/[^/]+/", pathNot: "^src/sandboxes/($1|host|remote)/" },
      },
    ),
    error(
      "engines-share-one-folder",
      "src/engine/shared knows no database: rows come through its stores (DispatchStore, RunStore, RunJournal, ...).",
      {
        from: { path: "^src/engine/shared/", pathNot: test },
        to: {
          path: "^src/(sqlite|postgres|engine/(embedded|postgres|restate))/|^node_modules/pg/|^(node:)?sqlite$",
        },
      },
    ),
    error(
      "engines-are-strangers",
      "Engines share src/engine/shared, not each other; Restate calls the nodes of the engine on Postgres.",
      {
        from: { path: "^src/engine/(embedded|postgres)/", pathNot: test },
        to: { path: "^src/engine/(embedded|postgres|restate)/", pathNot: "^src/engine/$1/" },
      },
    ),
    error("restate-calls-nodes", "src/engine/restate is an executor of src/engine/postgres.", {
      from: { path: "^src/engine/restate/", pathNot: test },
      to: { path: "^src/(engine/embedded|sqlite)/" },
    }),
    error("console-is-a-client", "The console enters kit/client, as any page does.", {
      from: { path: "^console/" },
      to: { path: "^src/", pathNot: "^src/client/index[.]ts$" },
    }),
    error("console-stands-alone", "Nothing of kit enters the console.", {
      from: { path: "^src/" },
      to: { path: "^console/" },
    }),
    error("runs-anywhere", "These rooms are pure: no Node module.", {
      from: { path: "^src/(base|protocol|specs|guidelines|agents|client|interfaces)/", pathNot: test },
      to: { dependencyTypes: ["core"] },
    }),
    ...Object.entries(homes).map(([vendor, home]) =>
      error("vendors-stay-home", `${vendor} is imported in src/(${home}) only.`, {
        from: { path: "^src/", pathNot: [`^src/(${home})(/|[.]ts$)`, test] },
        to: { path: `^node_modules/${vendor}/` },
      }),
    ),
    error("no-test-code", "Shipped code does not import tests.", {
      from: { path: "^src/", pathNot: test },
      to: { path: test },
    }),
    error("no-dev-packages", "Shipped code does not import development packages.", {
      from: { path: "^src/", pathNot: test },
      to: {
        dependencyTypes: ["npm-dev"],
        dependencyTypesNot: ["type-only", "npm", "npm-peer"],
        pathNot: optionalPackages.map((name) => `^node_modules/${name}/`),
      },
    }),
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    // TypeScript 7 has no JavaScript interface, so swc reads the sources; it sees type imports too.
    parser: "swc",
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "types", "default"] },
  },
};
