// The agents of a project, and a server of them that listens nowhere: a framework hands it requests.
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
      // Names other than this machine's own, under which the framework is reached.
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
