import { parse as parseToml } from "smol-toml";
import { expect, test } from "vitest";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import type { Application } from "../application.ts";
import { findTarget } from "./targets.ts";

/**
 * The fields that a platform documents, as far as kit writes them, with their kinds and limits. A field that a platform does not know is
 * refused here: most platforms read over it without a word, and the setting has no effect.
 */
const documented = {
  // https://fly.io/docs/reference/configuration/
  "fly.toml": z.strictObject({
    app: z.string().regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/),
    kill_signal: z.enum(["SIGINT", "SIGTERM", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGKILL", "SIGSTOP"]),
    kill_timeout: z.int().min(0).max(300),
    build: z.strictObject({ dockerfile: z.string() }),
    deploy: z.strictObject({ strategy: z.enum(["canary", "rolling", "bluegreen", "immediate"]) }),
    mounts: z.array(
      z.strictObject({
        source: z.string().regex(/^[a-z0-9_]{1,30}$/),
        destination: z.string().startsWith("/"),
        initial_size: z.string().regex(/^\d+gb$/),
      }),
    ),
    http_service: z.strictObject({
      internal_port: z.int(),
      force_https: z.boolean(),
      auto_stop_machines: z.enum(["off", "stop", "suspend"]),
      auto_start_machines: z.boolean(),
      min_machines_running: z.int(),
      checks: z.array(
        z.strictObject({
          method: z.literal("GET"),
          path: z.string().startsWith("/"),
          interval: z.string().regex(/^\d+s$/),
          timeout: z.string().regex(/^\d+s$/),
          grace_period: z.string().regex(/^\d+s$/),
        }),
      ),
    }),
    vm: z.array(z.strictObject({ size: z.string(), memory: z.string().regex(/^\d+(mb|gb)$/) })),
  }),
  // https://docs.railway.com/config-as-code/reference; the seconds are numbers, whatever its examples say.
  "railway.json": z.strictObject({
    $schema: z.literal("https://railway.com/railway.schema.json"),
    build: z.strictObject({ builder: z.enum(["RAILPACK", "DOCKERFILE"]), dockerfilePath: z.string() }),
    deploy: z.strictObject({
      healthcheckPath: z.string().startsWith("/"),
      healthcheckTimeout: z.int(),
      numReplicas: z.int().min(1),
      restartPolicyType: z.enum(["ON_FAILURE", "ALWAYS", "NEVER"]),
      sleepApplication: z.boolean(),
      requiredMountPath: z.string().startsWith("/"),
      overlapSeconds: z.int(),
      drainingSeconds: z.int(),
    }),
  }),
  // https://render.com/docs/blueprint-spec
  "render.yaml": z.strictObject({
    services: z.array(
      z.strictObject({
        type: z.enum(["web", "worker", "pserv"]),
        name: z.string(),
        runtime: z.literal("node"),
        plan: z.enum(["free", "starter", "standard", "pro", "pro plus", "pro max", "pro ultra"]),
        rootDir: z.string().optional(),
        buildCommand: z.string(),
        startCommand: z.string(),
        healthCheckPath: z.string().startsWith("/"),
        numInstances: z.int().min(1),
        maxShutdownDelaySeconds: z.int().min(1).max(300),
        disk: z.strictObject({
          name: z.string(),
          mountPath: z.string().startsWith("/"),
          sizeGB: z.int().min(1),
        }),
        envVars: z.array(
          z.union([
            z.strictObject({ key: z.string(), value: z.string() }),
            z.strictObject({ key: z.string(), generateValue: z.boolean() }),
            z.strictObject({ key: z.string(), sync: z.boolean() }),
          ]),
        ),
      }),
    ),
  }),
  // https://github.com/compose-spec/compose-spec/blob/main/spec.md
  "compose.yaml": z.strictObject({
    services: z.record(
      z.string().regex(/^[a-zA-Z0-9._-]+$/),
      z.strictObject({
        build: z.string(),
        init: z.boolean(),
        restart: z.enum(["no", "always", "on-failure", "unless-stopped"]),
        stop_grace_period: z.string().regex(/^\d+s$/),
        ports: z.array(z.string().regex(/^\d+:\d+$/)),
        environment: z.array(z.string().regex(/^[A-Za-z_]\w*$/)),
        volumes: z.array(z.string().regex(/^[a-z]+:\/.+$/)),
      }),
    ),
    volumes: z.record(z.string(), z.null()),
  }),
} as const;

const targetOf = {
  "fly.toml": "fly",
  "railway.json": "railway",
  "render.yaml": "render",
  "compose.yaml": "docker",
};

function fileOf(name: keyof typeof documented): unknown {
  const app: Pick<Application, "name" | "root" | "folder" | "dependencies" | "variables" | "agents"> & {
    readonly loaded: { readonly config: object };
  } = {
    name: "shop",
    root: "/nowhere",
    folder: name === "render.yaml" ? "apps/shop" : "",
    dependencies: { pg: "8.0.0" },
    variables: ["OPENAI_API_KEY"],
    agents: [],
    loaded: { config: {} },
  };
  const files = findTarget(targetOf[name]).files(app as unknown as Application);
  const text = files.find(({ path }) => path.endsWith(name))?.content ?? "";
  if (name.endsWith(".toml")) return parseToml(text);
  return name.endsWith(".json") ? JSON.parse(text) : parseYaml(text);
}

test.each(Object.entries(documented))(
  "each field of %s is documented by the platform, and within its limits",
  (name, schema) => {
    const value = fileOf(name as keyof typeof documented);
    expect(schema.safeParse(value).error?.issues).toBeUndefined();
    expect(schema.safeParse({ ...(value as object), sleep: true }).success).toBe(false);
  },
);
