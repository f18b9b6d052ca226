import { execFile, execFileSync } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../src/testing/free-port.ts";
import { servedCases } from "./served-cases.ts";
import { outputVariables, ServerOutput } from "./server-output.ts";
import { createTargetProject, type TargetProject } from "./target-project.ts";

const run = promisify(execFile);

/** Debian's buildah builds and runs images without a daemon; as root it needs no further rights. */
const hasBuildah =
  process.getuid?.() === 0 && succeeds("buildah", ["--version"]) && succeeds("setpriv", ["--version"]);

function succeeds(file: string, args: readonly string[]): boolean {
  try {
    execFileSync(file, args, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** A substitute for the base image of a Dockerfile: the Node of this machine, with the programs that the file runs. */
async function writeBaseSystem(folder: string): Promise<void> {
  const programs = ["/bin/sh", "/bin/mkdir", "/bin/chown", "/usr/bin/setpriv"];
  const files = new Map(programs.map((path) => [path, path]));
  files.set("/usr/local/bin/node", process.execPath);
  for (const program of [...files.values()]) {
    const { stdout } = await run("ldd", [program]);
    for (const [, library] of stdout.matchAll(/(\/\S+) \(0x/g))
      if (library !== undefined) files.set(library, library);
  }
  for (const [path, source] of files) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await cp(await realpath(source), join(folder, path));
  }
  await mkdir(join(folder, "tmp"));
  await mkdir(join(folder, "etc"));
  await writeFile(
    join(folder, "etc/passwd"),
    "root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n",
  );
}

describe.skipIf(!hasBuildah)("a container of buildah (skipped without buildah or root)", () => {
  let project: TargetProject;
  let work = "";
  const at = (): readonly string[] => {
    const positions = ["--root", join(work, "store"), "--runroot", join(work, "run")];
    return [...positions, "--storage-driver", "vfs"];
  };
  const buildah = async (...args: readonly string[]): Promise<string> => {
    const env = { ...process.env, BUILDAH_ISOLATION: "chroot" };
    return (await run("buildah", [...at(), ...args], { env })).stdout.trim();
  };

  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), "kit-images-"));
    await writeBaseSystem(join(work, "system"));
    const base = await buildah("from", "scratch");
    await buildah("copy", "--quiet", base, join(work, "system"), "/");
    await buildah("commit", "--quiet", base, "docker.io/library/node:24-bookworm-slim");
    project = await createTargetProject();
    for (const target of ["docker", "fly"]) {
      const { exitCode, stderr } = await project.kit(["build", "--target", target]);
      expect(stderr).toBe("");
      expect(exitCode).toBe(0);
      // A file that a person has left next to the output.
      await writeFile(join(project.root, `build/${target}/.env`), "SECRET=of-the-project\n");
      await writeFile(join(project.root, `build/${target}/notes.txt`), "notes\n");
      await buildah(
        "bud",
        "--quiet",
        "--format",
        "docker",
        "--pull-never",
        "--tag",
        target,
        join(project.root, "build", target),
      );
    }
  });

  afterAll(async () => {
    await project?.remove();
    await rm(work, { recursive: true, force: true });
  });

  async function serve(
    image: string,
  ): Promise<{ readonly server: ServerOutput; readonly container: string }> {
    const container = await buildah("from", "--pull-never", image);
    const { OCIv1 } = JSON.parse(await buildah("inspect", container));
    const port = await freePort();
    const variables = Object.entries(outputVariables).flatMap(([name, value]) => [
      "--env",
      `${name}=${value}`,
    ]);
    const words = ["run", ...variables, "--env", `PORT=${port}`, container, "--", ...OCIv1.config.Cmd];
    const command = ["buildah", ...at(), ...words];
    const server = new ServerOutput(command, { BUILDAH_ISOLATION: "chroot" });
    await server.start();
    return { server, container };
  }

  test.each(["docker", "fly"])(
    "%s: serves as a non-root user, and contains no file from outside of the project",
    async (image) => {
      const { server, container } = await serve(image);
      try {
        for (const { name, run: check } of image === "docker" ? servedCases : servedCases.slice(0, 2)) {
          await check(server).catch((error: unknown) => {
            throw new Error(`${name}\n${server.log}`, { cause: error });
          });
        }
        const top = await buildah("mount", container);
        expect(await server.user()).toBe(1000);
        await expect(readFile(join(top, "app/.env"))).rejects.toThrow();
        await expect(readFile(join(top, "app/notes.txt"))).rejects.toThrow();
        expect(server.log).toContain('"type":"request"');
        // buildah's chroot can kill a process whose user it chose itself. If the container chose the user, the process drains.
        if (image === "fly") expect(await server.end("SIGTERM")).toBe(0);
      } finally {
        await server.end("SIGKILL");
      }
    },
  );

  test("a server without keys refuses to listen on a public address", async () => {
    const container = await buildah("from", "--pull-never", "docker");
    const failed: unknown = await buildah("run", container, "--", "node", "server.mjs").catch(
      (error: unknown) => error,
    );
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining("KIT_API_KEYS") });
  });
});
