import { stringify } from "smol-toml";
import type { Application } from "../application.ts";
import { type OutputFiles, textFile } from "../bundler.ts";
import { functionFiles, functionProblems, functionWarnings } from "./functions.ts";
import type { Target } from "./target.ts";

/** Netlify's time limits for a function that answers requests, and for a scheduled one. */
const usualSeconds = 60;
const scheduledSeconds = 30;
const variables = ["DATABASE_URL"];

/** Two Netlify functions: one answers requests, the other runs on a schedule. */
export const netlify: Target = {
  name: "netlify",
  summary: "Netlify: a function with Postgres, and a scheduled one",
  application: "app",
  placement: "output",
  variables,
  problems: functionProblems,
  warnings: (app) => [
    ...functionWarnings(app, secondsOf(app)),
    `The scheduled function has ${scheduledSeconds} seconds: what it takes up must be done in steps of ${scheduledSeconds - 10}.`,
  ],
  files: () => [{ path: "netlify.toml", content: settings() }],
  bundle: async (app) => ({ files: await bundle(app) }),
  next: (app, at) => [
    `cd ${at}`,
    "netlify link",
    `# set ${allVariables(app).join(", ")}: netlify env:import <file>, or in the site's settings`,
    "netlify deploy --prod --no-build --dir app/public --functions app/functions",
  ],
  deployment: (app, { folder: cwd }) => ({
    tools: ["netlify"],
    install: "Get it: npm install --global netlify-cli.",
    check: ["status"],
    signIn: "netlify login, and netlify link in that folder",
    required: [],
    steps: [
      {
        args: ["deploy", "--prod", "--no-build", "--dir", "app/public", "--functions", "app/functions"],
        cwd,
      },
    ],
    address: {
      printed: [
        /(?:Website URL|production URL|Production URL|live URL):?\s+<?(https?:\/\/[^\s>]+)/i,
        /(https?:\/\/\S+\.netlify\.app)/,
      ],
    },
    remarks: [
      `The first time: netlify link in that folder, and ${allVariables(app).join(", ")} as variables of the site.`,
    ],
  }),
};

function allVariables(app: Application): readonly string[] {
  return ["KIT_API_KEYS", ...new Set([...variables, ...app.variables])];
}

function secondsOf({ loaded }: Application): number {
  return loaded.config.build?.max_seconds ?? usualSeconds;
}

function settings(): string {
  const value = {
    build: { publish: "app/public" },
    // The functions are bundled already, so the archive takes their files unchanged.
    functions: { directory: "app/functions", node_bundler: "none", included_files: ["app/server/**"] },
  };
  return `# Written by kit build; yours to change: kit build leaves it as it is then.
${stringify(value)}
`;
}

async function bundle(app: Application): Promise<OutputFiles> {
  const files = await functionFiles(app, "server");
  files.set(
    "functions/kit.mjs",
    textFile(`// Made by kit build.
import { application } from "../server/application.mjs";
import { netlifyFunction } from "../server/kit/dist/server/functions/netlify.js";
export default netlifyFunction(application, { seconds: ${secondsOf(app)} });
export const config = { path: "/*", nodeVersion: "24" };
`),
  );
  files.set(
    "functions/kit-work.mjs",
    textFile(`// Made by kit build.
import { application } from "../server/application.mjs";
import { netlifySchedule } from "../server/kit/dist/server/functions/netlify.js";
export default netlifySchedule(application, { seconds: ${Math.min(scheduledSeconds, secondsOf(app))} });
export const config = { schedule: "* * * * *", nodeVersion: "24" };
`),
  );
  // Netlify wants a folder of static files; the function serves everything.
  files.set("public/.gitkeep", textFile(""));
  return files;
}
