/**
 * Publishes the package under the name in `NPM_PACKAGE`, from the release workflow only.
 *
 * `kit` on npm is another project, and only the workflow knows the address of the repository. So this script writes both
 * into the published `package.json`; npm's provenance compares them.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const name = process.env.NPM_PACKAGE;
const repository = process.env.GITHUB_REPOSITORY;
if (name === undefined || repository === undefined) {
  console.error("Set NPM_PACKAGE to a name that is yours, and run this in the release workflow.");
  process.exit(2);
}
const address = `${process.env.GITHUB_SERVER_URL ?? "https://github.com"}/${repository}`;
const npm = (...args: string[]): string => execFileSync("npm", args, { encoding: "utf8" });
const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
npm(
  "pkg",
  "set",
  `name=${name}`,
  "repository.type=git",
  `repository.url=git+${address}.git`,
  `homepage=${address}#readme`,
  `bugs.url=${address}/issues`,
);
if (isPublished()) console.log(`${name}@${version} is published already.`);
else {
  execFileSync("node", ["scripts/build.ts"], { stdio: "inherit" });
  execFileSync("npm", ["publish", "--provenance", "--access", "public"], { stdio: "inherit" });
  // changesets/action looks for this line, and creates a release for it.
  console.log(`New tag: v${version}`);
}

function isPublished(): boolean {
  try {
    return npm("view", `${name}@${version}`, "version").trim() === version;
  } catch {
    return false;
  }
}
