/** Serves a project for the measurements of HTTP: `node serve.ts <root>`; prints the port. */
import { openProject } from "../../src/project/open-project.ts";
import { createServer } from "../../src/server/create-server.ts";

const [root = ""] = process.argv.slice(2);
const project = await openProject({ root });
const server = createServer({ project });
const { port } = await server.listen({ port: 0 });
console.log(port);
process.on("SIGTERM", () => {
  server
    .close()
    .then(() => project.close())
    .then(
      () => process.exit(0),
      () => process.exit(1),
    );
});
