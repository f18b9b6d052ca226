// The agents of a project and their server, which does not listen: a framework passes it requests.
import { openProject, openService } from "kit";
import { createServer } from "kit/server";

export async function openKit({ root = process.cwd() } = {}) {
  const project = await openProject({ root });
  const service = await openService({ root });
  const server = createServer({
    project,
    service,
    access: {
      apiKeys: (process.env.KIT_API_KEYS ?? "").split(",").filter((key) => key !== ""),
      // Other host names of the framework's server.
      allowedHosts: (process.env.KIT_ALLOWED_HOSTS ?? "").split(",").filter((name) => name !== ""),
    },
  });
  return {
    server,
    async close() {
      await server.close();
      await service.close();
      await project.close();
    },
  };
}
