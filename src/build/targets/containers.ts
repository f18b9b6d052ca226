import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "smol-toml";
import type { Application } from "../application.ts";
import { installLine, serverWarnings } from "./node.ts";
import type { Target, TargetFile } from "./target.ts";

/** The port inside a container, unless the platform sets another one in PORT. */
const port = 8080;
/** How long a stop waits for prompts under way, in seconds. */
const stopSeconds = 30;

const remark = "Written by kit build; yours to change: kit build leaves it as it is then.";

/**
 * A Dockerfile for the application beside it. It contains nothing of the project. On platforms whose mounted volumes
 * belong to root, the container starts as root, gives the state folder to the server's user, and continues as that
 * user.
 */
function dockerfile(app: Application, { ownsVolume }: { readonly ownsVolume: boolean }): string {
  const install =
    Object.keys(app.dependencies).length === 0
      ? ""
      : `COPY app/package.json ${app.unlocked === undefined ? "app/package-lock.json " : ""}./
RUN ${installLine(app)} --no-audit --no-fund && npm cache clean --force
`;
  const start = ownsVolume
    ? `USER 1000:1000
VOLUME /app/.kit
`
    : "";
  const command = ownsVolume
    ? 'CMD ["node", "server.mjs", "--log", "json"]'
    : `# The platform's volume belongs to root: it is given to the user that the server runs as.
CMD ["sh", "-c", "chown 1000:1000 .kit && exec setpriv --reuid 1000 --regid 1000 --clear-groups node server.mjs --log json"]`;
  return `# ${remark}
FROM node:24-bookworm-slim
ENV NODE_ENV=production HOME=/home/node KIT_HOST=0.0.0.0 PORT=${port}
WORKDIR /app
${install}COPY app/ ./
# Sessions, accepted work and the index; the rest belongs to root, and the server cannot change it.
RUN mkdir .kit && chown 1000:1000 .kit
${start}EXPOSE ${port}
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/health').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
${command}
`;
}

/** The image contains only the application. */
const dockerignore = `# ${remark}
*
!app
app/.kit
app/node_modules
**/.env*
`;

function containerFiles(app: Application, options: { readonly ownsVolume: boolean }): readonly TargetFile[] {
  return [
    { path: "Dockerfile", content: dockerfile(app, options) },
    { path: ".dockerignore", content: dockerignore },
  ];
}

/** In most containers, commands of agents run without isolation. */
function containerWarnings(app: Application): readonly string[] {
  const shells = app.agents.filter(
    ({ profile }) => profile?.allowShell === true || (profile?.commands?.length ?? 0) > 0,
  );
  return [
    ...serverWarnings(app),
    ...shells.map(
      ({ path }) =>
        `${path}: the agent runs commands, and most containers cannot isolate them: use a remote sandbox, or install bubblewrap in the image and allow it its namespaces.`,
    ),
  ];
}

const base = {
  application: "app",
  placement: "output",
  problems: () => [],
  warnings: containerWarnings,
} as const;

/** A container image, and a compose file to run it with. */
export const docker: Target = {
  ...base,
  name: "docker",
  summary: "a container image: Dockerfile, .dockerignore, compose.yaml",
  files: (app) => [
    ...containerFiles(app, { ownsVolume: true }),
    { path: "compose.yaml", content: compose(app) },
  ],
  next: (app, folder) => [
    `docker build --tag ${app.name} ${folder}`,
    `docker run --init --publish ${port}:${port} --volume ${app.name}-state:/app/.kit --env KIT_API_KEYS ${app.name}`,
    `# or, with the same variables set: docker compose --file ${folder === "." ? "" : `${folder}/`}compose.yaml up --build`,
  ],
  deployment: (_, { folder }) => ({
    tools: ["docker"],
    install: "Get it from https://docs.docker.com/get-docker/.",
    check: ["info"],
    signIn: "docker info, which says what is in the way",
    required: ["KIT_API_KEYS"],
    steps: [{ args: ["compose", "--file", join(folder, "compose.yaml"), "up", "--build", "--detach"] }],
    address: `http://127.0.0.1:${port}`,
    remarks: ["It runs on this machine; docker compose logs --follow shows its log."],
  }),
};

/** Names of variables are plain words, and JSON is valid YAML, so the file needs no escaping. */
function compose(app: Application): string {
  const environment = ["KIT_API_KEYS", ...app.variables].map((name) => `      - ${JSON.stringify(name)}\n`);
  return `# ${remark}
services:
  ${app.name}:
    build: .
    init: true
    restart: unless-stopped
    stop_grace_period: ${stopSeconds}s
    ports:
      - "${port}:${port}"
    # Their values come from the environment, or from a .env beside this file.
    environment:
${environment.join("")}    # One container at a time: the state is SQLite on this volume.
    volumes:
      - state:/app/.kit
volumes:
  state:
`;
}

/** Machines of Fly. */
export const fly: Target = {
  ...base,
  name: "fly",
  summary: "Fly.io: fly.toml with a volume, and a Dockerfile",
  files: (app) => [
    ...containerFiles(app, { ownsVolume: false }),
    { path: "fly.toml", content: flyToml(app) },
  ],
  next: (app, folder) => [
    `cd ${folder}`,
    "fly launch --copy-config --no-deploy",
    `fly secrets set ${["KIT_API_KEYS", ...app.variables].map((name) => `${name}=…`).join(" ")}`,
    "fly deploy --ha=false",
  ],
  deployment: (app, { folder }) => ({
    tools: ["fly", "flyctl"],
    install: "Get it from https://fly.io/docs/flyctl/install/.",
    check: ["auth", "whoami"],
    signIn: "fly auth login",
    required: [],
    steps: [{ args: ["deploy", "--config", "fly.toml", "--ha=false"], cwd: folder }],
    address: `https://${flyName(folder) ?? app.name}.fly.dev`,
    remarks: [
      `The first time: fly launch --copy-config --no-deploy there, then fly secrets set ${["KIT_API_KEYS", ...app.variables].join("=… ")}=…`,
    ],
  }),
};

/** The application's name in a fly.toml that a user may have changed. */
function flyName(folder: string): string | undefined {
  try {
    const { app } = parse(readFileSync(join(folder, "fly.toml"), "utf8"));
    return typeof app === "string" && /^[a-z0-9-]+$/.test(app) ? app : undefined;
  } catch {
    return undefined;
  }
}

function flyToml(app: Application): string {
  const settings = {
    app: app.name,
    kill_signal: "SIGTERM",
    kill_timeout: stopSeconds,
    build: { dockerfile: "Dockerfile" },
    deploy: { strategy: "rolling" },
    mounts: [{ source: "kit_state", destination: "/app/.kit", initial_size: "1gb" }],
    http_service: {
      internal_port: port,
      force_https: true,
      auto_stop_machines: "off",
      auto_start_machines: true,
      min_machines_running: 1,
      checks: [{ method: "GET", path: "/health", interval: "30s", timeout: "5s", grace_period: "30s" }],
    },
    vm: [{ size: "shared-cpu-1x", memory: "1gb" }],
  };
  return `# ${remark}
# One machine: the state is SQLite on its volume. It is never stopped when idle: timers and schedules would sleep with it.
${stringify(settings)}
`;
}

/** A service of Railway. */
export const railway: Target = {
  ...base,
  name: "railway",
  summary: "Railway: railway.json with a volume, and a Dockerfile",
  files: (app) => [
    ...containerFiles(app, { ownsVolume: false }),
    { path: "railway.json", content: railwayJson() },
  ],
  next: (app, folder) => [
    "railway init",
    "railway volume add --mount-path /app/.kit",
    `railway variables ${["KIT_API_KEYS", ...app.variables].map((name) => `--set ${name}=…`).join(" ")} --set KIT_MAX_STREAM_SECONDS=840`,
    `railway up ${folder} --path-as-root --no-gitignore`,
  ],
  deployment: (app, { folder }) => ({
    tools: ["railway"],
    install: "Get it: npm install --global @railway/cli.",
    check: ["whoami"],
    signIn: "railway login",
    required: [],
    steps: [{ args: ["up", folder, "--path-as-root", "--no-gitignore", "--ci"] }],
    address: ["domain"],
    remarks: [
      `The first time: railway init, railway volume add --mount-path /app/.kit, and railway variables --set for ${["KIT_API_KEYS", ...app.variables].join(", ")}.`,
    ],
  }),
};

function railwayJson(): string {
  const value = {
    $schema: "https://railway.com/railway.schema.json",
    build: { builder: "DOCKERFILE", dockerfilePath: "Dockerfile" },
    deploy: {
      healthcheckPath: "/health",
      healthcheckTimeout: 120,
      numReplicas: 1,
      restartPolicyType: "ALWAYS",
      sleepApplication: false,
      requiredMountPath: "/app/.kit",
      overlapSeconds: 0,
      drainingSeconds: stopSeconds,
    },
  };
  return `${JSON.stringify(value, null, 2)}\n`;
}
