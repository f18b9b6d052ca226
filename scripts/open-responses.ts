// Runs the compliance tests of Open Responses over HTTP against kit: `node scripts/open-responses.ts <checkout of openresponses/openresponses>`.
import { mkdtemp, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "rolldown";
import { serveService } from "../src/server/testing/serve-service.ts";
import { createScriptedModel } from "../src/testing/scripted-model.ts";
import { createTestService } from "../src/testing/test-service.ts";
import { repositoryRoot } from "./files.ts";

interface TestResult {
  readonly id: string;
  readonly status: string;
  readonly errors?: readonly string[];
}

interface Suite {
  readonly testTemplates: readonly {
    readonly id: string;
    readonly transport?: string;
    readonly endpoint?: string;
  }[];
  runAllTests(
    config: object,
    onProgress: (result: TestResult) => void,
    templates: Suite["testTemplates"],
  ): Promise<readonly TestResult[]>;
}

const [checkout] = process.argv.slice(2);
if (checkout === undefined) throw new Error("Name the folder of a checkout of openresponses/openresponses.");

// Inside the repository, so that the bundle finds its packages.
const folder = await mkdtemp(join(repositoryRoot, "node_modules/.open-responses-"));
const bundle = join(folder, "suite.mjs");
await build({
  input: resolve(checkout, "src/lib/compliance-tests.ts"),
  platform: "node",
  tsconfig: false,
  external: ["ws"],
  // The suite is written for version 3, which the package still contains.
  resolve: { alias: { zod: join(repositoryRoot, "node_modules/zod/v3/index.js") } },
  output: { file: bundle },
  logLevel: "warn",
});
const { testTemplates, runAllTests }: Suite = await import(pathToFileURL(bundle).href);

const model = createScriptedModel(({ tools = [], prompt }) =>
  tools.some(({ name }) => name === "get_weather") && prompt.at(-1)?.role === "user"
    ? { toolCalls: [{ name: "get_weather", input: { location: "San Francisco, CA" }, pieces: 5 }] }
    : { deltas: ["One ", "two ", "three."], usage: { input: 3, output: 3 } },
);
const served = await serveService({ openService: ({ root }) => createTestService({ root, model }) });
// kit has no WebSocket at `/v1/responses`, and no `/v1/responses/compact`.
const covered = testTemplates.filter(
  ({ id, endpoint }) => !id.startsWith("websocket-") && endpoint === undefined,
);
const results = await runAllTests(
  {
    baseUrl: `${served.url}/v1`,
    apiKey: "none",
    authHeaderName: "Authorization",
    useBearerPrefix: true,
    model: "echo",
    runtime: "server",
  },
  () => undefined,
  covered,
);
await served.close();
await rm(folder, { recursive: true });
for (const { id, status, errors = [] } of results) console.log([`${status}\t${id}`, ...errors].join("\n  "));
const passed = results.filter(({ status }) => status === "passed").length;
console.log(`${passed} of ${results.length} passed; ${testTemplates.length - covered.length} left out.`);
process.exitCode = passed === results.length ? 0 : 1;
