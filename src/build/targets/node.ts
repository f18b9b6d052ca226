import type { Application } from "../application.ts";
import type { Target } from "./target.ts";

/** A folder that Node runs alone. */
export const node: Target = {
  name: "node",
  summary: "a folder that runs alone: node server.mjs",
  application: "",
  placement: "output",
  problems: () => [],
  warnings: (app) => serverWarnings(app),
  files: () => [],
  next: (app, folder) => [
    `cd ${folder}`,
    ...(Object.keys(app.dependencies).length === 0 ? [] : ["npm install --omit=dev"]),
    "node server.mjs",
  ],
};

/** The differences that every server has which runs apart from the repository. */
export function serverWarnings({ agents, loaded }: Application): readonly string[] {
  const local = agents.filter(({ profile }) =>
    profile?.sandbox === undefined
      ? loaded.config.agent?.sandbox === "local"
      : profile.sandbox.name === "local",
  );
  return local.map(
    ({ path }) =>
      `${path}: the agent works in the project's own folder (local), and the output has the code, specs and guidelines of it, but no repository.`,
  );
}
