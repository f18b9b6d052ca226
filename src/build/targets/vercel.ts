import type { Application } from "../application.ts";
import { type OutputFiles, textFile } from "../bundler.ts";
import { functionFiles, functionProblems, functionWarnings } from "./functions.ts";
import type { Target } from "./target.ts";

/** The time limit of a function call, on every plan with Fluid compute. */
const usualSeconds = 300;
const variables = ["DATABASE_URL", "CRON_SECRET"];
const folder = "functions/index.func";

/** A function of Vercel, as its Build Output API wants it. */
export const vercel: Target = {
  name: "vercel",
  summary: "Vercel: a function with Postgres, and a scheduled call",
  application: ".vercel/output",
  placement: "output",
  variables,
  problems: functionProblems,
  warnings: (app) => [
    ...functionWarnings(app, secondsOf(app)),
    "Vercel makes the scheduled call every minute on paid plans. The Hobby plan refuses that: write a daily schedule into config.json, and runs that sleep go on once a day.",
  ],
  files: () => [],
  bundle: async (app) => ({ files: await bundle(app) }),
  next: (app, at) => [
    `cd ${at}`,
    "vercel link",
    ...allVariables(app).map((name) => `vercel env add ${name} production`),
    "vercel deploy --prebuilt --prod",
  ],
  deployment: (app, { folder: cwd }) => ({
    tools: ["vercel"],
    install: "Get it: npm install --global vercel.",
    check: ["whoami"],
    signIn: "vercel login",
    required: [],
    steps: [{ args: ["deploy", "--prebuilt", "--prod"], cwd }],
    // The address of a single deployment asks for a sign-in; that of the project does not.
    address: {
      printed: [
        /Aliased:?\s+(https?:\/\/\S+)/,
        /Production:?\s+(https?:\/\/\S+)/,
        /(https?:\/\/\S+\.vercel\.app)/,
      ],
    },
    remarks: [
      `The first time: vercel link in that folder, then vercel env add for ${allVariables(app).join(", ")}.`,
    ],
  }),
};

function allVariables(app: Application): readonly string[] {
  return ["KIT_API_KEYS", ...new Set([...variables, ...app.variables])];
}

function secondsOf({ loaded }: Application): number {
  return loaded.config.build?.max_seconds ?? usualSeconds;
}

async function bundle(app: Application): Promise<OutputFiles> {
  const seconds = secondsOf(app);
  const files = await functionFiles(app, folder);
  files.set(
    `${folder}/index.mjs`,
    textFile(`// Made by kit build.
import { application } from "./application.mjs";
import { vercelFunction } from "./kit/dist/server/functions/vercel.js";
export default vercelFunction(application, { seconds: ${seconds} });
`),
  );
  files.set(
    `${folder}/.vc-config.json`,
    toJson({
      runtime: "nodejs24.x",
      handler: "index.mjs",
      launcherType: "Nodejs",
      shouldAddHelpers: false,
      supportsResponseStreaming: true,
      maxDuration: seconds,
    }),
  );
  files.set(
    "config.json",
    toJson({
      version: 3,
      routes: [{ src: "/(.*)", dest: "/index" }],
      crons: [{ path: "/_kit/work", schedule: "* * * * *" }],
    }),
  );
  return files;
}

function toJson(value: unknown): Uint8Array {
  return textFile(`${JSON.stringify(value, null, 2)}\n`);
}
