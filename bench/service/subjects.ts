import { kitLabels } from "../runtime/kit-setups.ts";
import type { Serve } from "./subject.ts";

export const subjectNames = [
  "floor",
  "kit",
  "kit-repository",
  "kit-plain",
  "voltagent",
  "mastra-server",
] as const;
export type SubjectName = (typeof subjectNames)[number];

export const labels: Readonly<Record<SubjectName, string>> = {
  floor: "Hono and a row",
  ...kitLabels,
  voltagent: "VoltAgent",
  "mastra-server": "Mastra",
};

/** Loads one subject only, so that imports of the others do not affect its measurement. */
export async function loadSubject(name: SubjectName): Promise<Serve> {
  switch (name) {
    case "floor":
      return (await import("./subjects/floor.ts")).serveFloor;
    case "kit":
    case "kit-repository":
    case "kit-plain":
      return (await import("./subjects/kit.ts")).serveKit(name);
    case "voltagent":
      return (await import("./subjects/voltagent.ts")).serveVoltAgent;
    case "mastra-server":
      return (await import("./subjects/mastra.ts")).serveMastra;
  }
}

/** How a prompt of an instance is sent to a subject. */
export function toPrompt(
  subject: SubjectName,
  instance: string,
  message: string,
): { readonly path: string; readonly body: unknown } {
  switch (subject) {
    case "floor":
    case "kit":
    case "kit-repository":
    case "kit-plain":
      return { path: `/agents/bench/${instance}`, body: { message } };
    case "voltagent":
      return {
        path: "/agents/bench/text",
        body: {
          input: message,
          options: { memory: { userId: "bench", conversationId: instance } },
        },
      };
    case "mastra-server":
      return {
        path: "/api/agents/bench/generate",
        body: { messages: message, memory: { thread: instance, resource: "bench" } },
      };
  }
}
