/** A process of its own that runs some command lines on a repository, and fails when one breaks. Argument: the root. */
import { main } from "../../src/cli/main.ts";

const [root = ""] = process.argv.slice(2);
for (const line of ["specs list", "specs validate", "guidelines list"]) {
  const exitCode = await main([...line.split(" "), "--cwd", root]);
  if (exitCode !== 0 && exitCode !== 1) throw new Error(`kit ${line} ended with ${exitCode}.`);
}
