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
    ...(Object.keys(app.dependencies).length === 0 ? [] : [installLine(app)]),
    "node server.mjs",
  ],
};

/** The command that installs the packages of an output: at the versions of its lock file, if it has one. */
export function installLine({ unlocked }: Application): string {
  return `npm ${unlocked === undefined ? "ci" : "install"} --omit=dev`;
}

/** The differences that every server has which runs apart from the repository. */
export function serverWarnings({ agents, loaded, unlocked }: Application): readonly string[] {
  const local = agents.filter(({ profile }) =>
    profile?.sandbox === undefined
      ? loaded.config.agent?.sandbox === "local"
      : profile.sandbox.name === "local",
  );
  return [
    ...local.map(
      ({ path }) =>
        `${path}: the agent works in the project's own folder (local), and the output has the code, specs and guidelines of it, but no repository.`,
    ),
    ...(unlocked === undefined
      ? []
      : [
          `The output has no lock file, because ${unlocked}: npm chooses the versions of the packages that the listed ones need when it installs them. npm install --package-lock-only in the project makes one.`,
        ]),
  ];
}
