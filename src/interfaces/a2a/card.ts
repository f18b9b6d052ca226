import type { z } from "zod";
import type { a2aCardSchema } from "../../protocol/a2a.ts";

/** The media types of files that agents read. */
export const fileTypes = [
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
  "application/pdf",
  "audio/wav",
  "audio/mpeg",
] as const;

/** The media types of what a task can return. */
export const outputTypes = ["text/plain", "application/json"] as const;

interface Described {
  readonly name: string;
  readonly description: string;
}

interface CardOptions {
  readonly agent: { readonly name: string; readonly description?: string | undefined };
  /** Skills besides answering. */
  readonly skills: readonly Described[];
  /** The address of its endpoint. */
  readonly url: string;
  readonly version: string;
  /** Whether requests need a key. */
  readonly isGuarded: boolean;
}

/** Creates the card of an agent. A reader with a key gets more skills: `GetExtendedAgentCard`. */
export function toAgentCard({
  agent: { name, description = `The agent ${name}.` },
  skills,
  url,
  version,
  isGuarded,
}: CardOptions): z.output<typeof a2aCardSchema> {
  return {
    name,
    description,
    version,
    supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: isGuarded },
    defaultInputModes: [...outputTypes, ...fileTypes],
    defaultOutputModes: [...outputTypes],
    skills: [
      { id: name, name, description, tags: ["agent"] },
      ...skills.map((skill) => ({ id: `skill:${skill.name}`, ...skill, tags: ["skill"] })),
    ],
    ...(isGuarded && {
      securitySchemes: {
        key: { httpAuthSecurityScheme: { scheme: "Bearer", description: "A key of this server." } },
      },
      securityRequirements: [{ schemes: { key: { list: [] } } }],
    }),
  };
}
