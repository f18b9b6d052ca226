/** The backends that are chosen by name. */
export const backendNames = ["typed", "graph", "openai_agents"] as const;
export type BackendName = (typeof backendNames)[number];
